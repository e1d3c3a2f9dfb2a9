"""Alarms on models that do not answer the canary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_constructs.observability.alarm_topic import tell
from inference_contracts import canary_names

#: One lost answer may be a pod that moves.
_ROUNDS: Final = 2


class CanaryAlarms(Construct):
    """One alarm per model. It is also raised if the canary does not report.

    Parameters
    ----------
    platform
        `metadata.name`.
    models
        Names of the models.
    every_minutes
        Minutes between two rounds of the canary.
    runbook
        What to do, as a path or a URL.
    alarm_topic
        Topic that is told of alarms and of their end. None if nobody is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        models: Sequence[str],
        every_minutes: int,
        runbook: str,
        alarm_topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._alarms: list[cloudwatch.IAlarm] = []
        for model in models:
            alarm = cloudwatch.Alarm(
                self,
                model,
                alarm_description=f"{model} did not answer {_ROUNDS} questions in turn. Runbook: {runbook}",
                comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                evaluation_periods=_ROUNDS,
                metric=_answers(platform, model, every_minutes),
                threshold=1,
                treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
            )
            tell(alarm, alarm_topic)
            self._alarms.append(alarm)

    @property
    def alarms(self) -> Sequence[cloudwatch.IAlarm]:
        """The alarms."""
        return self._alarms


def _answers(platform: str, model: str, every_minutes: int) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=canary_names.METRIC_NAMESPACE,
        metric_name=canary_names.ANSWERED,
        dimensions_map={
            canary_names.PLATFORM_DIMENSION: platform,
            canary_names.MODEL_DIMENSION: model,
        },
        statistic="Minimum",
        period=cdk.Duration.minutes(every_minutes),
    )
