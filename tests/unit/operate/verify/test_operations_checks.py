"""The controllers of a deployed platform: their runs, their table and their freeze switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.verify.account_checks import controllers
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_contracts import operations_names

MakePlatform = Callable[..., VerifiedPlatform]


class MissingError(Exception):
    """What a service says of something that is not there."""


class FakeServices:
    """Answers of four services, healthy unless a test changes them."""

    class exceptions:  # noqa: N801 - the name of boto3's clients
        ResourceNotFoundException = ParameterNotFound = MissingError

    def __init__(self) -> None:
        self.points: list[dict[str, float]] = [{"Sum": 1.0}, {"Sum": 1.0}]
        self.resources = [{"ResourceType": "AWS::DynamoDB::GlobalTable", "PhysicalResourceId": "cases"}]
        self.status: str | None = "ACTIVE"
        self.frozen: str | None = "none"
        self.asked: dict[str, Any] = {}

    def describe_stack_resources(self, **_: Any) -> dict[str, Any]:
        return {"StackResources": self.resources}

    def describe_table(self, **_: Any) -> dict[str, Any]:
        if self.status is None:
            raise MissingError
        return {"Table": {"TableStatus": self.status}}

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        self.asked = asked
        return {"Datapoints": self.points}

    def get_parameter(self, **_: Any) -> dict[str, Any]:
        if self.frozen is None:
            raise MissingError
        return {"Parameter": {"Value": self.frozen}}


@pytest.fixture
def services(account: Account, monkeypatch: pytest.MonkeyPatch) -> FakeServices:
    fake = FakeServices()
    monkeypatch.setattr(account, "client", lambda _service: fake)
    return fake


def with_health(spec: dict[str, Any]) -> None:
    spec.update(observability={}, gpuHealth={})


def test_without_the_section_nothing_is_asked(platform: MakePlatform, services: FakeServices) -> None:
    assert list(controllers(platform())) == []
    assert services.asked == {}


def test_controllers_that_run_are_well(platform: MakePlatform, services: FakeServices) -> None:
    here = platform(with_health)
    assert [each.severity for each in controllers(here)] == ["ok"] * 3
    assert (here.now - services.asked["StartTime"]).total_seconds() == 180
    assert {each["Name"]: each["Value"] for each in services.asked["Dimensions"]} == {
        "platform": here.name,
        "cell": operations_names.MAIN_CELL,
        "service": operations_names.HEALTH_SERVICE,
    }


@pytest.mark.parametrize(
    ("change", "severity", "words"),
    [
        ({"points": []}, "error", "ended 0 runs within 3 minutes"),
        ({"resources": []}, "error", "has no table"),
        ({"status": None}, "error", "is gone"),
        ({"status": "UPDATING"}, "error", "is UPDATING"),
        ({"frozen": None}, "error", "so nothing is replaced"),
        ({"frozen": "all"}, "warning", "the freeze switch is 'all'"),
    ],
)
def test_what_is_wrong_is_told_with_a_command(
    platform: MakePlatform, services: FakeServices, change: dict[str, Any], severity: str, words: str
) -> None:
    for name, value in change.items():
        setattr(services, name, value)
    (finding,) = (each for each in controllers(platform(with_health)) if each.severity != "ok")
    assert finding.severity == severity
    assert words in finding.message
    assert finding.command
