"""Alarms on a streaming job.

AWS recommends alarms on restarts, failed checkpoints and lag
(https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-alarms.html). Runtimes from Flink
2.2 count restarts as ``numRestarts`` only
(https://docs.aws.amazon.com/managed-flink/latest/java/metrics-dimensions.html).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_constructs.observability.alarm_topic import tell
from inference_constructs.streaming.stream_metrics import StreamMetrics
from inference_contracts import streaming_job

#: The job commits its position at each checkpoint, that is once a minute.
_BEHIND_SECONDS: Final = 180
_OPERATORS: Final = cloudwatch.ComparisonOperator
_MISSING: Final = cloudwatch.TreatMissingData


class StreamAlarms(Construct):
    """Alarms on lag, restarts, a job that does not run, failed checkpoints, and dead letters.

    Parameters
    ----------
    metrics
        Metrics of the job.
    people
        Topic that is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        metrics: StreamMetrics,
        people: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._people, job = people, metrics.job
        self._alarms: list[cloudwatch.Alarm] = []
        self._add(
            "behind",
            metrics.metric_lag(),
            f"{job} is more than {_BEHIND_SECONDS} seconds behind its events for five minutes.",
            runbook=streaming_job.STREAM_BEHIND_RUNBOOK,
            above=_BEHIND_SECONDS,
            periods=5,
        )
        self._add(
            "restarting",
            metrics.metric_flink_growth("numRestarts"),
            f"{job} restarted in three of fifteen minutes.",
            runbook=streaming_job.STREAM_STOPPED_RUNBOOK,
            periods=15,
            of=3,
        )
        self._add(
            "stopped",
            # A job that does not run has no metrics.
            metrics.metric_flink("numRestarts", statistic="SampleCount"),
            f"{job} does not run for five minutes.",
            runbook=streaming_job.STREAM_STOPPED_RUNBOOK,
            below=1,
            periods=5,
        )
        self._add(
            "checkpoints-failing",
            metrics.metric_flink_growth("numberOfFailedCheckpoints"),
            f"Checkpoints of {job} failed in three of ten minutes.",
            runbook=streaming_job.STREAM_CHECKPOINTS_RUNBOOK,
            periods=10,
            of=3,
        )
        self._add(
            "dead-letters",
            metrics.metric_job_growth(streaming_job.DEAD_LETTERS_METRIC),
            f"{job} wrote dead letters.",
            runbook=streaming_job.STREAM_DEAD_LETTERS_RUNBOOK,
        )

    @property
    def alarms(self) -> Sequence[cloudwatch.Alarm]:
        """The alarms."""
        return self._alarms

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
