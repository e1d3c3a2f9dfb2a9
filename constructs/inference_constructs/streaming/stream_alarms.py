"""Alarms on a streaming job.

AWS recommends alarms on restarts, failed checkpoints and lag
(https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-alarms.html). Runtimes from Flink
2.2 count restarts as ``numRestarts`` only
(https://docs.aws.amazon.com/managed-flink/latest/java/metrics-dimensions.html).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_blueprints.contracts import streaming_names
from inference_constructs.observability.alarm_topic import tell

_MINUTE: Final = cdk.Duration.minutes(1)
_FLINK: Final = "AWS/KinesisAnalytics"
_KAFKA: Final = "AWS/Kafka"
#: The job commits its position at each checkpoint, that is once a minute.
_BEHIND_SECONDS: Final = 180
_OPERATORS: Final = cloudwatch.ComparisonOperator
_MISSING: Final = cloudwatch.TreatMissingData


class StreamAlarms(Construct):
    """Alarms on lag, restarts, a job that does not run, failed checkpoints, and dead letters.

    Parameters
    ----------
    application
        Name of the application.
    job
        Name of the job, which is its consumer group.
    cluster, topic
        Names of the Kafka cluster and of the topic of events.
    people
        Topic that is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        application: str,
        job: str,
        cluster: str,
        topic: str,
        people: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._application, self._job, self._people = application, job, people
        self._alarms: list[cloudwatch.Alarm] = []
        self._add(
            "behind",
            # "Time estimate (in seconds) to drain MaxOffsetLag":
            # https://docs.aws.amazon.com/msk/latest/developerguide/metrics-details-express.html
            cloudwatch.Metric(
                namespace=_KAFKA,
                metric_name="EstimatedMaxTimeLag",
                dimensions_map={"Cluster Name": cluster, "Consumer Group": job, "Topic": topic},
                period=_MINUTE,
                statistic="Maximum",
            ),
            f"{job} is more than {_BEHIND_SECONDS} seconds behind its events for five minutes.",
            runbook=streaming_names.STREAM_BEHIND_RUNBOOK,
            above=_BEHIND_SECONDS,
            periods=5,
        )
        self._add(
            "restarting",
            self._growth("numRestarts"),
            f"{job} restarted in three of fifteen minutes.",
            runbook=streaming_names.STREAM_STOPPED_RUNBOOK,
            periods=15,
            of=3,
        )
        self._add(
            "stopped",
            # A job that does not run has no metrics.
            self._metric("numRestarts", statistic="SampleCount"),
            f"{job} does not run for five minutes.",
            runbook=streaming_names.STREAM_STOPPED_RUNBOOK,
            below=1,
            periods=5,
        )
        self._add(
            "checkpoints-failing",
            self._growth("numberOfFailedCheckpoints"),
            f"Checkpoints of {job} failed in three of ten minutes.",
            runbook=streaming_names.STREAM_CHECKPOINTS_RUNBOOK,
            periods=10,
            of=3,
        )
        self._add(
            "dead-letters",
            self._growth(streaming_names.DEAD_LETTERS_METRIC, dict([streaming_names.JOB_METRIC_DIMENSION])),
            f"{job} wrote dead letters.",
            runbook=streaming_names.STREAM_DEAD_LETTERS_RUNBOOK,
        )

    @property
    def alarms(self) -> Sequence[cloudwatch.Alarm]:
        """The alarms."""
        return self._alarms

    def _metric(
        self, name: str, dimensions: dict[str, str] | None = None, *, statistic: str = "Average"
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=_FLINK,
            metric_name=name,
            dimensions_map={"Application": self._application, **(dimensions or {})},
            period=_MINUTE,
            statistic=statistic,
        )

    def _growth(self, name: str, dimensions: dict[str, str] | None = None) -> cloudwatch.MathExpression:
        """Return the growth of a counter, which starts at zero with each start of the job."""
        return cloudwatch.MathExpression(
            expression="DIFF(total)",
            label=name,
            period=_MINUTE,
            using_metrics={"total": self._metric(name, dimensions)},
        )

    def _add(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        says: str,
        *,
        runbook: str,
        above: float = 0,
        below: float | None = None,
        periods: int = 1,
        of: int | None = None,
    ) -> None:
        """Add an alarm for values above or below a threshold. Below one, it is also raised without values."""
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_description=f"{says} Runbook: {runbook}",
            comparison_operator=(
                _OPERATORS.GREATER_THAN_THRESHOLD if below is None else _OPERATORS.LESS_THAN_THRESHOLD
            ),
            datapoints_to_alarm=of or periods,
            evaluation_periods=periods,
            metric=metric,
            threshold=above if below is None else below,
            treat_missing_data=_MISSING.NOT_BREACHING if below is None else _MISSING.BREACHING,
        )
        tell(alarm, self._people)
        self._alarms.append(alarm)
