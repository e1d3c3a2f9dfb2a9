"""Compares what the ledger of the front door has counted with the usage records, twice a day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.code_staging import function_code
from inference_constructs.findings import acknowledge_grants
from inference_constructs.front_door.door_store import DoorStore
from inference_constructs.function_calls import scheduler_role, undelivered_events
from inference_constructs.observability.alarm_topic import tell
from inference_contracts import reconciliation_names as names
from inference_runtime import runtime_directory

#: More than one vCPU, and room for the identifiers of 10 million records.
_MEMORY_MIB: Final = 2048
_MINUTES: Final = 15
_HALF_A_DAY: Final = 12
#: Oldest record that may wait in the delivery stream, in seconds: it writes one each minute.
_OLDEST_SECONDS: Final = 900


class LedgerReconciliation(Construct):
    """A function behind a schedule, which reads checkpoints and usage records, and changes nothing.

    Parameters
    ----------
    platform
        `metadata.name`.
    store
        Tables and buckets of the front door.
    time_zone
        Time zone of the budgets, such as ``Europe/Berlin``.
    role_path
        IAM path of the function's role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        store: DoorStore,
        time_zone: str,
        role_path: str = "/",
    ) -> None:
        super().__init__(scope, construct_id)
        undelivered = undelivered_events(self, "Undelivered")
        self.function = add_function(
            self,
            "Compare",
            # Lambda's image promises no time zones.
            code=function_code(runtime_directory() / "door_reconciliation", packages=("tzdata",)),
            handler="door_reconciliation.handler.handle",
            timeout_seconds=60 * _MINUTES,
            memory_mib=_MEMORY_MIB,
            environment={
                names.PLATFORM: platform,
                names.TABLE: store.ledger_table,
                names.BUCKET: store.usage_bucket,
                names.ZONE: time_zone,
            },
            role_path=role_path,
            undelivered=undelivered,
        )
        grants = store.grant_compare(self.function)
        acknowledge_grants(self, grants, "Firehose names the objects of records after the time.")
        role = scheduler_role(self, "ScheduleRole", function=self.function, undelivered=undelivered)
        scheduler.Schedule(
            self,
            "TwiceADay",
            description="Compares the ledger of the front door with its usage records",
            schedule=scheduler.ScheduleExpression.cron(
                minute="0",
                hour=",".join(map(str, names.HOURS)),
                time_zone=cdk.TimeZone.of(time_zone),
            ),
            target=scheduler_targets.LambdaInvoke(
                self.function,
                input=scheduler.ScheduleTargetInput.from_object(
                    {"time": scheduler.ContextAttribute.scheduled_time}
                ),
                max_event_age=cdk.Duration.hours(6),
                retry_attempts=8,
                dead_letter_queue=undelivered,
                # CDK's `LambdaInvoke` target would also allow the function's versions.
                role=role.without_policy_updates(),
            ),
        )


class UsageAlarms(Construct):
    """Alarms on what no Prometheus reads: ledger and records differ or were not compared, or records wait.

    Parameters
    ----------
    platform
        `metadata.name`.
    stream_name
        Delivery stream of the usage records.
    differ_runbook, late_runbook
        What to do if ledger and records differ, and if records are late, as paths or URLs.
    alarm_topic
        Topic that is told of alarms and of their end. None if nobody is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        stream_name: str,
        differ_runbook: str,
        late_runbook: str,
        alarm_topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        above = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
        percent = names.MOST_DIFFERENT_PERCENT
        self._alarms = [
            cloudwatch.Alarm(
                self,
                "Differ",
                alarm_description=f"The ledger of the front door and its usage records differ by more than "
                f"{percent:g} %. Runbook: {differ_runbook}",
                comparison_operator=above,
                evaluation_periods=1,
                metric=_difference(platform, "Maximum", _HALF_A_DAY),
                threshold=percent,
                # Until the next comparison, the state is that of the last one.
                treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
            ),
            cloudwatch.Alarm(
                self,
                "NotCompared",
                alarm_description=f"The ledger of the front door was not compared with its usage records for "
                f"a day. Runbook: {differ_runbook}",
                comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                evaluation_periods=1,
                metric=_difference(platform, "SampleCount", 2 * _HALF_A_DAY),
                threshold=1,
                treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
            ),
            # https://docs.aws.amazon.com/firehose/latest/dev/monitoring-with-cloudwatch-metrics.html: age of
            # the oldest record in the stream. Without records there is no value.
            cloudwatch.Alarm(
                self,
                "NotDelivered",
                alarm_description=f"Usage records wait for {_OLDEST_SECONDS // 60} minutes in Firehose, "
                f"which keeps them for a day. Runbook: {late_runbook}",
                comparison_operator=above,
                evaluation_periods=1,
                metric=cloudwatch.Metric(
                    namespace="AWS/Firehose",
                    metric_name="DeliveryToS3.DataFreshness",
                    dimensions_map={"DeliveryStreamName": stream_name},
                    statistic="Maximum",
                    period=cdk.Duration.minutes(5),
                ),
                threshold=_OLDEST_SECONDS,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            ),
        ]
        for alarm in self._alarms:
            tell(alarm, alarm_topic)

    @property
    def alarms(self) -> Sequence[cloudwatch.IAlarm]:
        """The alarms."""
        return self._alarms


def _difference(platform: str, statistic: str, hours: int) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=names.METRIC_NAMESPACE,
        metric_name=names.DIFFERENCE_PERCENT,
        dimensions_map={names.PLATFORM_DIMENSION: platform},
        statistic=statistic,
        period=cdk.Duration.hours(hours),
    )
