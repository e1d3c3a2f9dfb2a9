"""The watched object is what the deployment brings, and CloudFormation is always told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from moto import mock_aws

from watched_object.handler import handle


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
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        for bucket in ("assets", "door"):
            client.create_bucket(Bucket=bucket)
        client.put_bucket_versioning(Bucket="door", VersioningConfiguration={"Status": "Enabled"})
        for name in ("one", "two"):
            client.put_object(Bucket="assets", Key=f"{name}.json", Body=json.dumps({"is": name}).encode())
        yield client


def event(kind: str, url: str, source: str = "one") -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": url,
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Object",
        "ResourceProperties": {
            "SourceBucket": "assets",
            "SourceKey": f"{source}.json",
            "Bucket": "door",
            "Key": "configuration.json",
        },
    }


def content(s3: Any) -> Any:
    return json.loads(s3.get_object(Bucket="door", Key="configuration.json")["Body"].read())


def test_an_update_replaces_the_content_and_keeps_the_resource(
    s3: Any, answers: tuple[str, list[dict[str, Any]]]
) -> None:
    """Red if the resource gets another name: CloudFormation would delete the former one after the update."""
    url, received = answers
    handle(event("Create", url), None)
    assert content(s3) == {"is": "one"}
    handle(event("Update", url, "two"), None)
    assert content(s3) == {"is": "two"}
    assert [each["Status"] for each in received] == ["SUCCESS", "SUCCESS"]
    assert {each["PhysicalResourceId"] for each in received} == {"s3://door/configuration.json"}
    assert received[0]["Data"]["Version"] != received[1]["Data"]["Version"]


def test_a_deletion_leaves_the_object_to_programs_that_run(
    s3: Any, answers: tuple[str, list[dict[str, Any]]]
) -> None:
    url, received = answers
    handle(event("Create", url), None)
    handle(event("Delete", url), None)
    assert received[-1]["Status"] == "SUCCESS"
    assert content(s3) == {"is": "one"}


@pytest.mark.usefixtures("s3")
def test_a_missing_source_fails_the_deployment_and_says_which(
    answers: tuple[str, list[dict[str, Any]]],
) -> None:
    url, received = answers
    handle(event("Create", url, "three"), None)
    assert received[0]["Status"] == "FAILED"
    assert "s3://assets/three.json" in received[0]["Reason"]
