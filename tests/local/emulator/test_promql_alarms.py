"""Alarms on PromQL in the emulator: states and events by the answers of a metrics service.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-promql.html describes when they change.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError

from inference_local.emulator.emulator import Emulator

NAME, QUERY = "broken-nodes", "broken > 0"
RULE = {
    "source": ["aws.cloudwatch"],
    "detail-type": ["CloudWatch Alarm State Change", "CloudWatch Alarm Contributor State Change"],
}


class Metrics:
    """A service with the API of Prometheus that says which nodes are broken."""

    broken: ClassVar[list[str]] = []

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                series = [{"metric": {"node": name}, "value": [0, "1"]} for name in Metrics.broken]
                content = json.dumps({"status": "success", "data": {"result": series}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: object) -> None:
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    metrics, folder = Metrics(), tmp_path_factory.mktemp("promql")
    threading.Thread(target=metrics.server.serve_forever, daemon=True).start()
    with Emulator(Path(folder), region="us-west-2", alarm_speed=0, metrics_url=metrics.address) as running:
        criteria = {"Query": QUERY, "PendingPeriod": 60, "RecoveryPeriod": 120}
        resources = {
            "Alarm": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {
                    "AlarmName": NAME,
                    "EvaluationCriteria": {"PromQLCriteria": criteria},
                    "EvaluationInterval": 60,
                },
            },
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "events"}},
            "Rule": {
                "Type": "AWS::Events::Rule",
                "Properties": {
                    "EventPattern": RULE,
                    "Targets": [{"Id": "queue", "Arn": {"Fn::GetAtt": ["Queue", "Arn"]}}],
                },
            },
        }
        cloudformation = running.client("cloudformation")
        cloudformation.create_stack(StackName="S", TemplateBody=json.dumps({"Resources": resources}))
        cloudformation.get_waiter("stack_create_complete").wait(StackName="S", WaiterConfig={"Delay": 1})
        yield running
    metrics.server.shutdown()
    metrics.server.server_close()


def events_of(emulator: Emulator) -> list[dict[str, Any]]:
    """Return the events since the last call."""
    sqs, found = emulator.client("sqs"), []
    url = sqs.get_queue_url(QueueName="events")["QueueUrl"]
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for each in messages:
            found.append(json.loads(each["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return found


def test_contributors_and_the_alarm_change_after_their_periods(emulator: Emulator) -> None:
    """By minute: a breaches from 1 to 4, b in 2 only. Pending is one minute, recovery two."""
    cloudwatch, began = emulator.client("cloudwatch"), 1_800_000_000.0
    [described] = cloudwatch.describe_alarms(AlarmNames=[NAME])["MetricAlarms"]
    assert described["StateValue"] == "OK"
    told, raised = {}, {}
    for minute in range(9):
        Metrics.broken = [name for name, at in (("a", range(1, 5)), ("b", (2,))) if minute in at]
        emulator.evaluate_alarms(began + 60 * minute)
        told[minute] = [
            (
                event["detail"].get("alarmContributor", {}).get("attributes"),
                event["detail"]["state"]["value"],
                event["time"],
            )
            for event in events_of(emulator)
        ]
        contributors = cloudwatch.describe_alarm_contributors(AlarmName=NAME)["AlarmContributors"]
        raised[minute] = [
            (each["ContributorAttributes"]["node"], each["StateTransitionedTimestamp"].timestamp() - began)
            for each in contributors
        ]
    # 2027-01-15T08:00:00Z is `began`.
    assert {minute: each for minute, each in told.items() if each} == {
        2: [({"node": "a"}, "ALARM", "2027-01-15T08:02:00Z"), (None, "ALARM", "2027-01-15T08:02:00Z")],
        7: [({"node": "a"}, "OK", "2027-01-15T08:07:00Z"), (None, "OK", "2027-01-15T08:07:00Z")],
    }
    assert raised == {minute: [("a", 120.0)] if 2 <= minute < 7 else [] for minute in range(9)}


def test_contributors_of_no_alarm_are_not_found(emulator: Emulator) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        emulator.client("cloudwatch").describe_alarm_contributors(AlarmName="none")


def test_an_alarm_without_an_interval_fails_its_stack(emulator: Emulator) -> None:
    cloudformation = emulator.client("cloudformation")
    alarm = {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {"EvaluationCriteria": {"PromQLCriteria": {"Query": QUERY}}},
    }
    template = json.dumps({"Resources": {"Alarm": alarm}})
    cloudformation.create_stack(StackName="Bad", TemplateBody=template, OnFailure="DO_NOTHING")
    cloudformation.describe_stacks(StackName="Bad")  # waits until the operation has ended
    events = cloudformation.describe_stack_events(StackName="Bad")["StackEvents"]
    reasons = " ".join(event.get("ResourceStatusReason", "") for event in events)
    assert "EvaluationInterval is 0" in reasons
