"""Metrics, alarms and the dashboard of streaming jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_constructs.observability.alarm_topic import tell
from inference_contracts import streaming_job

# Metrics of a streaming job: those of Flink and of the job itself, and how far it is behind its topic.

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
    more_events: Sequence[str] = ()
    """Names of further topics of events."""

    def metric_lag(self) -> cloudwatch.IMetric:
        """Return how long the job needs for the events that it has not read, in seconds.

        Of several topics, it is that of the one that is furthest behind.
        """
        if not self.more_events:
            return self._lag(self.events)
        topics = (self.events, *self.more_events)
        return cloudwatch.MathExpression(
            expression="MAX(METRICS())",
            label="EstimatedMaxTimeLag",
            period=cdk.Duration.minutes(1),
            using_metrics={f"lag{number}": self._lag(topic) for number, topic in enumerate(topics)},
        )

    def _lag(self, topic: str) -> cloudwatch.Metric:
        # "Time estimate (in seconds) to drain MaxOffsetLag":
        # https://docs.aws.amazon.com/msk/latest/developerguide/metrics-details-express.html
        return cloudwatch.Metric(
            namespace=_KAFKA,
            metric_name="EstimatedMaxTimeLag",
            dimensions_map={
                "Cluster Name": self.cluster,
                "Consumer Group": self.job,
                "Topic": topic,
            },
            period=cdk.Duration.minutes(1),
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
            period=cdk.Duration.minutes(1),
            statistic=statistic,
        )


def _growth(counter: cloudwatch.Metric, name: str) -> cloudwatch.MathExpression:
    total = f"total_{name}"  # A graph with several expressions needs an identifier for each metric.
    return cloudwatch.MathExpression(
        expression=f"DIFF({total})",
        label=name,
        period=cdk.Duration.minutes(1),
        using_metrics={total: counter},
    )


# Alarms on a streaming job.
#
# AWS recommends alarms on restarts, failed checkpoints and lag
# (https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-alarms.html). Runtimes from Flink
# 2.2 count restarts as ``numRestarts`` only
# (https://docs.aws.amazon.com/managed-flink/latest/java/metrics-dimensions.html).

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


# The dashboard of streaming jobs.
#
# Metrics of the job's own group reach CloudWatch once per subtask
# (https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-custom.html), so graphs of them
# show the mean of the subtasks, or the largest value where the slowest subtask counts.

_ALL, _HEIGHT = 24, 6
_WIDTH: Final = _ALL // 3


@dataclass(frozen=True, slots=True)
class ShownStream:
    """A job on the dashboard."""

    job: str
    """Name of the job."""
    metrics: StreamMetrics
    """Its metrics."""
    alarms: Sequence[cloudwatch.IAlarm]
    """Its alarms."""


class StreamDashboard(Construct):
    """Alarms of all jobs; for each job its events, lag, calls, times, dead letters and restarts.

    Parameters
    ----------
    jobs
        The jobs.
    """

    def __init__(self, scope: Construct, construct_id: str, *, jobs: Iterable[ShownStream]) -> None:
        super().__init__(scope, construct_id)
        shown = list(jobs)
        alarms = [alarm for each in shown for alarm in each.alarms]
        state = cloudwatch.AlarmStatusWidget(alarms=alarms, title="Alarms", width=_ALL, height=_HEIGHT // 2)
        rows: list[list[cloudwatch.IWidget]] = [[state], *(row for each in shown for row in _rows(each))]
        cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.hours(6), widgets=rows)


def _rows(shown: ShownStream) -> Iterable[list[cloudwatch.IWidget]]:
    """Yield the graphs of a job."""
    job, metrics = shown.job, shown.metrics
    growth, own = metrics.metric_job_growth, metrics.metric_job
    graphs: Mapping[str, Sequence[cloudwatch.IMetric]] = {
        "events per minute, mean of the subtasks": [growth(streaming_job.EVENTS_METRIC)],
        "seconds behind its events": [metrics.metric_lag()],
        "calls in flight, mean and largest of the subtasks": [
            own(streaming_job.IN_FLIGHT_METRIC),
            own(streaming_job.IN_FLIGHT_METRIC, statistic="Maximum"),
        ],
        "milliseconds from event to signal, slowest subtask": [
            own(name, statistic="Maximum") for name in streaming_job.EVENT_TO_SIGNAL_METRICS
        ],
        "milliseconds of a call, slowest subtask": [
            own(name, statistic="Maximum") for name in streaming_job.CALL_METRICS
        ],
        "answers and superseded versions per minute, mean of the subtasks": [
            growth(name) for name in streaming_job.ANSWER_METRICS
        ],
        "dead letters per minute, mean of the subtasks": [growth(streaming_job.DEAD_LETTERS_METRIC)],
        "restarts and failed checkpoints per minute": [
            metrics.metric_flink_growth(name) for name in ("numRestarts", "numberOfFailedCheckpoints")
        ],
        "open sessions, mean of the subtasks": [own(streaming_job.SESSIONS_METRIC)],
    }
    widgets = [
        cloudwatch.GraphWidget(
            title=f"{job}: {title}",
            left=list(lines),
            left_y_axis=cloudwatch.YAxisProps(min=0),
            width=_WIDTH,
            height=_HEIGHT,
        )
        for title, lines in graphs.items()
    ]
    for start in range(0, len(widgets), _ALL // _WIDTH):
        yield list(widgets[start : start + _ALL // _WIDTH])
