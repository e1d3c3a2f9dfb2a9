"""CloudFormation is always told, and each step of the deployment happens once."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from moto import mock_aws

from streaming import setup

ARN = "arn:aws:kafka:us-west-2:123456789012:cluster/events/0a-1"
BUCKET = "history"


class Context:
    """A function with time left, until a test takes it."""

    def __init__(self) -> None:
        self.left = 600_000

    def get_remaining_time_in_millis(self) -> int:
        return self.left


class Services:
    """Kafka and Flink of AWS."""

    def __init__(self) -> None:
        self.statuses = ["READY", "STARTING", "RUNNING"]
        self.started: list[str] = []
        self.brokers: dict[str, str] = {"BootstrapBrokerStringSaslIam": "b-1:9098,b-2:9098"}

    def get_bootstrap_brokers(self, ClusterArn: str) -> dict[str, str]:  # noqa: N803 - boto3's
        assert ClusterArn == ARN
        return self.brokers

    def describe_application(self, ApplicationName: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {"ApplicationDetail": {"ApplicationStatus": status, "ApplicationName": ApplicationName}}

    def start_application(self, ApplicationName: str) -> None:  # noqa: N803 - boto3's
        self.started.append(ApplicationName)


@pytest.fixture
def answers() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its name
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/answer", received
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    fake, real = Services(), boto3.client
    monkeypatch.setattr(setup, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(
        boto3, "client", lambda service: real(service, region_name="us-west-2") if service == "s3" else fake
    )
    return fake


def request(answers: tuple[str, list[dict[str, Any]]], **changes: Any) -> dict[str, Any]:
    url, received = answers
    context = changes.pop("context", Context())
    event = {
        "RequestType": "Create",
        "ResponseURL": url,
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Step",
        **changes,
    }
    setup.handle(event, context)
    answer = received.pop()
    assert {key: answer[key] for key in ("StackId", "RequestId", "LogicalResourceId")} == {
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Step",
    }
    return answer


def test_brokers_are_those_for_iam(answers: Any, services: Services) -> None:
    brokers = {"ResourceType": "Custom::KafkaBrokers", "ResourceProperties": {"ClusterArn": ARN}}
    assert request(answers, **brokers)["Data"] == {"Servers": "b-1:9098,b-2:9098"}
    services.brokers = {"BootstrapBrokerStringTls": "b-1:9094"}
    failed = request(answers, **brokers)
    assert failed["Status"] == "FAILED"
    assert "no brokers for clients with IAM" in failed["Reason"]


def test_a_configuration_has_its_digest_in_its_key_and_stays(answers: Any, services: Services) -> None:
    text = '{"name": "shopper"}'
    step: dict[str, Any] = {
        "ResourceType": "Custom::JobConfiguration",
        "ResourceProperties": {"Bucket": BUCKET, "Prefix": "configurations/shopper/", "Document": text},
    }
    with mock_aws():
        s3 = boto3.client("s3")
        location = {"LocationConstraint": "us-west-2"}
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=location)
        answer = request(answers, **step)
        key = f"configurations/shopper/{hashlib.sha256(text.encode()).hexdigest()}.json"
        assert answer["Data"] == {"Key": key, "Address": f"s3://{BUCKET}/{key}"}
        # Another key is another resource, whose predecessor CloudFormation deletes.
        assert answer["PhysicalResourceId"] == key
        assert request(answers, **step, RequestType="Delete", PhysicalResourceId=key)["Status"] == "SUCCESS"
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() == text


def start(answers: Any, **changes: Any) -> dict[str, Any]:
    step = {"ResourceType": "Custom::StartedApplication", "ResourceProperties": {"Application": "a"}}
    return request(answers, **{**step, **changes})


def test_a_new_application_is_started_and_waited_for(answers: Any, services: Services) -> None:
    assert start(answers)["Status"] == "SUCCESS"
    assert services.started == ["a"]
    assert services.statuses == ["RUNNING"]


def test_an_application_that_runs_is_not_started(answers: Any, services: Services) -> None:
    services.statuses = ["RUNNING"]
    assert start(answers)["Status"] == "SUCCESS"
    assert services.started == []


def test_one_that_somebody_stopped_is_left_alone(answers: Any, services: Services) -> None:
    services.statuses = ["READY"]
    changed = start(answers, RequestType="Update", OldResourceProperties={"Application": "a"})
    gone = start(answers, RequestType="Delete", PhysicalResourceId="a")
    assert [changed["Status"], gone["Status"], services.started] == ["SUCCESS", "SUCCESS", []]


def test_a_job_that_does_not_run_fails_the_deployment(answers: Any, services: Services) -> None:
    services.statuses = ["READY", "STARTING", "READY"]
    failed = start(answers)
    assert failed["Status"] == "FAILED"
    assert "READY after its start; see its log group" in failed["Reason"]


def test_a_deployment_hears_before_the_function_ends(answers: Any, services: Services) -> None:
    context = Context()
    context.left = 20_000
    services.statuses = ["STARTING"]
    failed = start(answers, context=context)
    assert failed["Status"] == "FAILED"
    assert "is still STARTING" in failed["Reason"]
