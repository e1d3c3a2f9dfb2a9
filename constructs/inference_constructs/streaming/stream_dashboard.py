"""The dashboard of streaming jobs.

Metrics of the job's own group reach CloudWatch once per subtask
(https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-custom.html), so graphs of them show
the mean of the subtasks, or the largest value where the slowest subtask counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from inference_constructs.streaming.stream_metrics import StreamMetrics
from inference_contracts import streaming_job

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
