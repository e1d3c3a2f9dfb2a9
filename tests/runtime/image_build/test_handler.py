"""CloudFormation is always told, and a build starts when there is something to build."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from moto import mock_aws

from image_build import handler
from image_build.handler import handle


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
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    with mock_aws():
        boto3.client("codebuild").create_project(
            name="image",
            source={"type": "S3", "location": "bucket/key"},
            artifacts={"type": "NO_ARTIFACTS"},
            environment={
                "type": "LINUX_CONTAINER",
                "image": "aws/codebuild/standard:7.0",
                "computeType": "BUILD_GENERAL1_SMALL",
            },
            serviceRole="arn:aws:iam::123456789012:role/build",
        )
        yield "image"


class Time:
    """What Lambda says: so many milliseconds are left at each question."""

    def __init__(self, *left: int) -> None:
        self._left = iter(left)

    def get_remaining_time_in_millis(self) -> int:
        return next(self._left)


NO_QUESTION = Time()


def event(kind: str, url: str, project: str, **properties: str) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": url,
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Start",
        "ResourceProperties": {"Project": project, "Tag": "abc", **properties},
    }


@pytest.mark.parametrize(("kind", "builds"), [("Create", 1), ("Update", 1), ("Delete", 0)])
def test_a_build_starts_unless_the_stack_goes(
    answers: tuple[str, list[dict[str, Any]]], project: str, kind: str, builds: int
) -> None:
    url, received = answers
    handle(event(kind, url, project), NO_QUESTION)
    assert len(boto3.client("codebuild").list_builds_for_project(projectName=project)["ids"]) == builds
    assert received == [
        {
            "Status": "SUCCESS",
            "Reason": "",
            "PhysicalResourceId": "abc",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Start",
        }
    ]


def test_a_build_that_does_not_start_fails_the_deployment_at_once(
    answers: tuple[str, list[dict[str, Any]]], project: str
) -> None:
    url, received = answers
    handle(event("Create", url, f"{project}-gone"), NO_QUESTION)
    assert received[0]["Status"] == "FAILED"
    assert received[0]["Reason"].startswith("the image build did not start: ")


class Builds:
    """CodeBuild, whose build is in one state after the other."""

    def __init__(self, *states: str) -> None:
        self._states = iter(states)

    def start_build(self, **_: Any) -> dict[str, Any]:
        return {"build": {"id": "image:1"}}

    def batch_get_builds(self, *, ids: list[str]) -> dict[str, Any]:
        assert ids == ["image:1"]
        return {"builds": [{"buildStatus": next(self._states)}]}


@pytest.mark.parametrize(
    ("states", "status", "words"),
    [
        (["IN_PROGRESS", "IN_PROGRESS", "SUCCEEDED"], "SUCCESS", ""),
        (["IN_PROGRESS", "FAILED"], "FAILED", "the image build image:1 ended with FAILED"),
        (itertools.repeat("IN_PROGRESS"), "FAILED", "the image build image:1 takes too long"),
    ],
)
def test_where_it_has_to_wait_the_end_of_the_build_is_the_answer(
    answers: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    states: list[str],
    status: str,
    words: str,
) -> None:
    builds = Builds(*itertools.islice(states, 10))
    monkeypatch.setattr(boto3, "client", lambda _: builds)
    monkeypatch.setattr(handler, "_LOOK_SECONDS", 0)
    url, received = answers
    handle(event("Update", url, "image", Wait="true"), Time(600_000, 300_000, 20_000))
    assert received[0]["Status"] == status
    assert received[0]["Reason"].startswith(words)


def test_a_build_that_there_is_none_of_is_waited_for_by_nobody(
    answers: tuple[str, list[dict[str, Any]]], project: str
) -> None:
    url, received = answers
    handle(event("Delete", url, project, Wait="true"), NO_QUESTION)
    assert received[0]["Status"] == "SUCCESS"
