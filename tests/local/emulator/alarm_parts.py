"""Alarms of the emulator, their metrics and what they send."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

ACCOUNT = "123456789012"
QUEUES = f"arn:aws:sqs:us-west-2:{ACCOUNT}"
PATIENCE_SECONDS = 240.0
MINUTE = 60.0


class AlarmParts:
    """Makes alarms on metrics of a namespace of its own, at times in the last hour.

    client: Returns clients of the emulator.
    """

    def __init__(self, client: Callable[[str], Any]) -> None:
        self.cloudwatch = client("cloudwatch")
        self.logs = client("logs")
        self.sqs = client("sqs")
        self._events = client("events")
        self._sns = client("sns")
        self.space = f"Tests/{uuid.uuid4().hex}"
        self.begin = (time.time() // MINUTE - 60) * MINUTE

    def minute(self, number: float) -> float:
        """Return the start of a minute, in seconds since 1970."""
        return self.begin + number * MINUTE

    def put(self, name: str, *values: float | None, first: float = 0, **datum: Any) -> None:
        """Put one value per minute, in its middle."""
        data = [
            {"MetricName": name, "Value": value, "Timestamp": _date(self.minute(first + at) + 30), **datum}
            for at, value in enumerate(values)
            if value is not None
        ]
        self.cloudwatch.put_metric_data(Namespace=self.space, MetricData=data)

    def alarm(self, metric: str = "Latency", **parameters: Any) -> str:
        """Make an alarm of 2 out of 3 minutes above 10, and return its name."""
        name: str = parameters.pop("AlarmName", None) or f"{metric}-{uuid.uuid4().hex[:8]}"
        single = {"Namespace": self.space, "MetricName": metric, "Statistic": "Maximum", "Period": 60}
        plain = {
            "EvaluationPeriods": 3,
            "DatapointsToAlarm": 2,
            "Threshold": 10,
            "ComparisonOperator": "GreaterThanThreshold",
        }
        chosen = {} if "Metrics" in parameters else single
        self.cloudwatch.put_metric_alarm(AlarmName=name, **{**chosen, **plain, **parameters})
        return name

    def composite(self, rule: str, **parameters: Any) -> str:
        """Make a composite alarm, and return its name."""
        name = f"composite-{uuid.uuid4().hex[:8]}"
        self.cloudwatch.put_composite_alarm(AlarmName=name, AlarmRule=rule, **parameters)
        return name

    def described(self, name: str) -> dict[str, Any]:
        """Return what DescribeAlarms says."""
        answer = self.cloudwatch.describe_alarms(
            AlarmNames=[name], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        [found] = answer["MetricAlarms"] + answer["CompositeAlarms"]
        described: dict[str, Any] = found
        return described

    def state(self, name: str) -> str:
        """Return the state of an alarm."""
        state: str = self.described(name)["StateValue"]
        return state

    def queue_of_events(self, name: str) -> str:
        """Return a queue that gets the events of an alarm's changes."""
        url = self._queue()
        pattern = {
            "source": ["aws.cloudwatch"],
            "detail-type": ["CloudWatch Alarm State Change"],
            "detail": {"alarmName": [name]},
        }
        rule = uuid.uuid4().hex
        self._events.put_rule(Name=rule, EventPattern=json.dumps(pattern))
        self._events.put_targets(Rule=rule, Targets=[{"Id": "queue", "Arn": _queue_arn(url)}])
        return url

    def topic(self) -> tuple[str, str]:
        """Return a topic, and a queue that gets its messages."""
        topic = self._sns.create_topic(Name=uuid.uuid4().hex)["TopicArn"]
        url = self._queue()
        self._sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=_queue_arn(url),
            Attributes={"RawMessageDelivery": "true"},
        )
        return topic, url

    def received(self, queue: str) -> list[dict[str, Any]]:
        """Return all messages of a queue. They are in it as soon as an evaluation has ended."""
        found: list[dict[str, Any]] = []
        while messages := self.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                found.append(json.loads(message["Body"]))
                self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        return found

    def log_group(self, **metric_filter: Any) -> str:
        """Return a log group with a stream ``one``, and a filter if there are parameters."""
        group = uuid.uuid4().hex
        self.logs.create_log_group(logGroupName=group)
        self.logs.create_log_stream(logGroupName=group, logStreamName="one")
        if metric_filter:
            self.logs.put_metric_filter(logGroupName=group, filterName="filter", **metric_filter)
        return group

    def log(self, group: str, *messages: str, at: float) -> None:
        """Write messages at a time in seconds since 1970."""
        events = [{"timestamp": int(at * 1000), "message": message} for message in messages]
        self.logs.put_log_events(logGroupName=group, logStreamName="one", logEvents=events)

    def sums(self, name: str, **dimensions: str) -> dict[float, tuple[float, float]]:
        """Return sum and count of a metric's values by minute, counted from `begin`."""
        answer = self.cloudwatch.get_metric_statistics(
            Namespace=self.space,
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
            StartTime=_date(self.begin),
            EndTime=_date(self.minute(60)),
            Period=60,
            Statistics=["Sum", "SampleCount"],
        )
        return {
            (point["Timestamp"].timestamp() - self.begin) / MINUTE: (point["Sum"], point["SampleCount"])
            for point in answer["Datapoints"]
        }

    def _queue(self) -> str:
        url: str = self.sqs.create_queue(QueueName=uuid.uuid4().hex)["QueueUrl"]
        return url


def _date(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _queue_arn(url: str) -> str:
    return f"{QUEUES}:{url.rpartition('/')[2]}"
