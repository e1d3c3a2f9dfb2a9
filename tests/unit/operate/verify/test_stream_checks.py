"""Streaming jobs of a deployed platform: their applications, and the way from an event to a signal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.verify.account_checks import streaming_jobs
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_blueprints.spec.source import shipped
from inference_contracts.streaming_job import JOB_FUNCTIONS_OUTPUT

MakePlatform = Callable[..., VerifiedPlatform]
FUNCTIONS = {"shopper": {"probe": "probe-1", "redrive": "redrive-1"}}


class MissingError(Exception):
    """What a service says of something that is not there."""


class FakeServices:
    """Answers of three services, healthy unless a test changes them."""

    class exceptions:  # noqa: N801 - the name of boto3's clients
        ResourceNotFoundException = MissingError

    def __init__(self) -> None:
        self.status: str | None = "RUNNING"
        self.answer: dict[str, Any] = {"session": "probe", "milliseconds": 840, "value": "{}"}
        self.error: str | None = None
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        outputs = [{"OutputKey": JOB_FUNCTIONS_OUTPUT, "OutputValue": json.dumps(FUNCTIONS)}]
        return {"Stacks": [{"Outputs": outputs}]}

    def describe_application(self, **_: Any) -> dict[str, Any]:
        if self.status is None:
            raise MissingError
        return {"ApplicationDetail": {"ApplicationStatus": self.status}}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's
        self.calls.append((FunctionName, json.loads(Payload)))
        content = {"errorMessage": self.error} if self.error else self.answer
        failed = {"FunctionError": "Unhandled"} if self.error else {}
        return {"Payload": io.BytesIO(json.dumps(content).encode()), **failed}


@pytest.fixture
def services(account: Account, monkeypatch: pytest.MonkeyPatch) -> FakeServices:
    fake = FakeServices()
    monkeypatch.setattr(account, "client", lambda _service: fake)
    monkeypatch.setattr(account, "patient_client", lambda _service, _config: fake)
    return fake


def with_streaming(spec: dict[str, Any]) -> None:
    shipped_spec = yaml.safe_load(shipped()["streaming-g6e"].read_text())["spec"]
    spec.update({key: shipped_spec[key] for key in ("teams", "kafka", "streaming", "signalStore")})
    spec["streaming"][0]["model"] = spec["models"][0]["name"]


def test_without_the_section_nothing_is_asked(platform: MakePlatform, services: FakeServices) -> None:
    assert list(streaming_jobs(platform())) == []
    assert services.calls == []


def test_a_job_that_answers_is_well_and_got_the_first_example(
    platform: MakePlatform, services: FakeServices
) -> None:
    here = platform(with_streaming)
    found = list(streaming_jobs(here))
    assert [each.severity for each in found] == ["ok", "ok"]
    assert "0.8 s" in found[1].message
    [(function, event)] = services.calls
    assert function == "probe-1"
    assert event["event"] == here.blueprint.spec.streaming[0].events.examples[0]


@pytest.mark.parametrize(
    ("status", "severity", "words"),
    [
        ("READY", "error", "does not run"),
        ("UPDATING", "warning", "UPDATING"),
        (None, "error", "gone"),
    ],
)
def test_a_job_that_does_not_run_gets_no_event(
    platform: MakePlatform, services: FakeServices, status: str | None, severity: str, words: str
) -> None:
    services.status = status
    [finding] = streaming_jobs(platform(with_streaming))
    assert (finding.severity, services.calls) == (severity, [])
    assert words in finding.message
    assert finding.command


def test_an_event_without_a_signal_is_an_error(platform: MakePlatform, services: FakeServices) -> None:
    services.answer["milliseconds"] = None
    *_, finding = streaming_jobs(platform(with_streaming))
    assert finding.severity == "error"
    assert "no signal" in finding.message
    assert "logs tail" in str(finding.command)


def test_a_probe_that_fails_tells_why(platform: MakePlatform, services: FakeServices) -> None:
    services.error = "the topic clicks does not exist"
    *_, finding = streaming_jobs(platform(with_streaming))
    assert finding.severity == "error"
    assert "the topic clicks does not exist" in finding.message
