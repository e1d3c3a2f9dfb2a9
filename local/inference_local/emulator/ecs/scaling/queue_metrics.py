"""The numbers of messages of SQS queues as metrics of CloudWatch: step policies of batch workers follow them.

Source: Amazon SQS Developer Guide, "Available CloudWatch metrics for Amazon SQS"
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html):
the namespace is AWS/SQS, the dimension QueueName, and values come once a minute.
"""

from __future__ import annotations

from typing import Final

from ministack.services import cloudwatch, sqs

_EVERY_SECONDS: Final = 60.0
#: Name of a metric to the attribute of a queue with the same meaning.
_METRICS: Final = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
}


class QueueMetrics:
    """Publishes the metrics of every queue."""

    def __init__(self) -> None:
        self._published_at: float | None = None

    def step(self, at_seconds: float, now_seconds: float) -> None:
        """Publish, if a minute has passed.

        Parameters
        ----------
        at_seconds
            Time of the alarms' clock.
        now_seconds
            The same in the time of samples.
        """
        if self._published_at is not None and 0 <= at_seconds - self._published_at < _EVERY_SECONDS:
            return
        self._published_at = at_seconds
        for url, queue in list(sqs._queues.items()):
            sqs._refresh_counts(queue)
            for metric, attribute in _METRICS.items():
                cloudwatch._store_datum(
                    "AWS/SQS",
                    metric,
                    {"QueueName": url.rpartition("/")[2]},
                    now_seconds,
                    "Count",
                    float(queue["attributes"][attribute]),
                    None,
                    None,
                    None,
                )
