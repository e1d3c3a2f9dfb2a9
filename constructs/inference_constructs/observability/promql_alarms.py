"""Alarms on series that Prometheus recorded and CloudWatch stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_constructs.observability.alarm_topic import tell


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmQuery:
    """An alarm on a PromQL query."""

    name: str
    """Name, unique in the platform."""
    query: str
    """Expression whose answer has one series per breach."""
    says: str
    """What a breach means, in one sentence."""
    runbook: str
    """What to do, as a path or a URL."""
    pending_seconds: int = 300
    """Time for which a series must breach."""
    recovery_seconds: int = 300
    """Time for which it must not, until the alarm is well."""
    evaluation_seconds: int = 60
    """Time between two evaluations, 10 to 3,600."""


class PromqlAlarms(Construct):
    """One CloudWatch PromQL alarm per query.

    Parameters
    ----------
    queries
        The alarms.
    alarm_topic
        Topic that is told of alarms and of their end. None if nobody is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        queries: Sequence[AlarmQuery],
        alarm_topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._alarms = {query.name: self._add(query, alarm_topic) for query in queries}

    @property
    def alarms(self) -> Mapping[str, cloudwatch.IAlarm]:
        """The alarms by name."""
        return self._alarms

    def _add(self, query: AlarmQuery, alarm_topic: sns.ITopic | None) -> cloudwatch.PromQLAlarm:
        alarm = cloudwatch.PromQLAlarm(
            self,
            query.name,
            alarm_description=f"{query.says} Runbook: {query.runbook}",
            query=query.query,
            evaluation_interval=cdk.Duration.seconds(query.evaluation_seconds),
            pending_period=cdk.Duration.seconds(query.pending_seconds),
            recovery_period=cdk.Duration.seconds(query.recovery_seconds),
        )
        tell(alarm, alarm_topic)
        return alarm
