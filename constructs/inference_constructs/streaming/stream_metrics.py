"""Metrics of a streaming job: those of Flink and of the job itself, and how far it is behind its topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from inference_contracts import streaming_job

_MINUTE: Final = cdk.Duration.minutes(1)
_FLINK: Final = "AWS/KinesisAnalytics"
_KAFKA: Final = "AWS/Kafka"


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """Metrics of a job, one value per minute."""

    application: str
    """Name of the application."""
    job: str
    """Name of the job, which is its consumer group."""
    cluster: str
    events: str
    """`cluster`, `events`: Names of the Kafka cluster and of the topic of events."""

    def metric_lag(self) -> cloudwatch.Metric:
        """Return how long the job needs for the events that it has not read, in seconds."""
        # "Time estimate (in seconds) to drain MaxOffsetLag":
        # https://docs.aws.amazon.com/msk/latest/developerguide/metrics-details-express.html
        return cloudwatch.Metric(
            namespace=_KAFKA,
            metric_name="EstimatedMaxTimeLag",
            dimensions_map={
                "Cluster Name": self.cluster,
                "Consumer Group": self.job,
                "Topic": self.events,
            },
            period=_MINUTE,
            statistic="Maximum",
        )

    def metric_flink(self, name: str, *, statistic: str = "Average") -> cloudwatch.Metric:
        """Return a metric that Flink has of every application.

        Parameters
        ----------
        name
            Such as ``numRestarts``.
        statistic
            Such as ``Average``.
        """
        return self._metric(name, {}, statistic)

    def metric_job(self, name: str, *, statistic: str = "Average") -> cloudwatch.Metric:
        """Return a metric of the job's own group.

        Parameters
        ----------
        name
            A name of `streaming_names`.
        statistic
            Such as ``Average``.
        """
        return self._metric(name, dict([streaming_job.JOB_METRIC_DIMENSION]), statistic)

    def metric_flink_growth(self, name: str) -> cloudwatch.MathExpression:
        """Return the growth of a counter of Flink, which starts at zero with each start of the job.

        Parameters
        ----------
        name
            Such as ``numRestarts``.
        """
        return _growth(self.metric_flink(name), name)

    def metric_job_growth(self, name: str) -> cloudwatch.MathExpression:
        """Return the growth of a counter of the job's own group.

        Parameters
        ----------
        name
            A name of `streaming_names`.
        """
        return _growth(self.metric_job(name), name)

    def _metric(self, name: str, dimensions: dict[str, str], statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=_FLINK,
            metric_name=name,
            dimensions_map={"Application": self.application, **dimensions},
            period=_MINUTE,
            statistic=statistic,
        )


def _growth(counter: cloudwatch.Metric, name: str) -> cloudwatch.MathExpression:
    total = f"total_{name}"  # A graph with several expressions needs an identifier for each metric.
    return cloudwatch.MathExpression(
        expression=f"DIFF({total})", label=name, period=_MINUTE, using_metrics={total: counter}
    )
