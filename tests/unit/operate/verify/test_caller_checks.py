"""The checks of `verify` that nobody gets around the front door."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from inference_blueprints.measure.completions.served_models import ListingFailedError, ServedModels
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.verify import endpoint_checks
from inference_blueprints.operate.verify.caller_checks import caller_certificates, known_callers
from inference_blueprints.operate.verify.verified_platform import (
    RunningPlatform,
    VerifiedPlatform,
    forwarded_port,
)
from inference_contracts.door_identities import BEHIND_PORT, CALLERS_PORT
from tests.unit.operate.conftest import NOW
from tests.unit.operate.verify.recorded import RecordedCluster

MakePlatform = Callable[..., VerifiedPlatform]
REFUSED = "error trying to reach service: connection refused"
UNTIL = "2027-01-31T00:00:00Z"


def door(spec: dict[str, Any]) -> None:
    arn = "arn:aws:acm:us-west-2:111122223333:certificate/0a1b2c3d-0000-4000-8000-000000000000"
    region = spec["environment"]["region"]
    spec["network"] = {"certificateArn": arn.replace("us-west-2", region), "domain": "models.example.com"}
    spec["teams"] = [{"name": "ads", "monthlyBudgetUsd": 100}]
    for model in spec["models"]:
        model["rates"] = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 0.4}
    spec["frontDoor"] = {}


def old_names(spec: dict[str, Any]) -> None:
    door(spec)
    spec["frontDoor"] = {"oldHostNames": {"models": {"until": UNTIL}}}


@dataclass
class Pods(RecordedCluster):
    """A cluster whose pods answer at some ports."""

    answers: Collection[tuple[str, int, str]] = ()
    failure: str = REFUSED

    def run(self, *arguments: str) -> str:
        match arguments:
            case ("get", "--raw", path) if "/proxy" in path:
                scheme, _, port = path.split("/pods/")[1].split("/proxy")[0].split(":")
                page = path.split("/proxy")[1]
                if (scheme, int(port), page) in self.answers:
                    return "{}"
                raise KubectlFailed(self.failure)
        return super().run(*arguments)


def found(
    platform: VerifiedPlatform,
    cluster: RecordedCluster,
    *answers: tuple[str, int, str],
    failure: str = REFUSED,
) -> set[tuple[str, str]]:
    """Return severity and message of each line about one pod."""
    pods = Pods(cluster.objects, answers=answers, failure=failure)
    lines = known_callers(RunningPlatform(platform, pods))
    return {(line.severity, line.message) for line in lines if "frontend-0" in line.message}


MODELS = "/v1/models"
HEALTHY = ("http", 8000, "/health")


def test_an_entry_point_that_refuses_strangers_is_well(
    platform: MakePlatform, cluster: RecordedCluster
) -> None:
    assert found(platform(door), cluster, HEALTHY) == {
        ("ok", "frontend-0 refuses callers without a certificate")
    }


@pytest.mark.parametrize(
    "opened", [("http", BEHIND_PORT), ("http", 8000), ("http", CALLERS_PORT), ("https", CALLERS_PORT)]
)
def test_whoever_answers_a_stranger_is_named(
    platform: MakePlatform, cluster: RecordedCluster, opened: tuple[str, int]
) -> None:
    [(severity, message)] = found(platform(door), cluster, HEALTHY, (*opened, MODELS))
    assert severity == "error"
    assert f"{opened[0]}://…:{opened[1]}/v1/models" in message


def test_a_pod_that_nobody_reaches_proves_nothing(platform: MakePlatform, cluster: RecordedCluster) -> None:
    """Red if every failure counts as a refusal: then a pod without a network would be well."""
    [(severity, message)] = found(platform(door), cluster)
    assert (severity, "port 8000" in message) == ("error", True)
    [(severity, _)] = found(platform(door), cluster, failure='pods is forbidden: User "a" cannot get')
    assert severity == "unknown"


def test_old_host_names_are_a_warning_while_they_lead_here(
    platform: MakePlatform, cluster: RecordedCluster
) -> None:
    [(severity, message)] = found(platform(old_names), cluster, HEALTHY, ("http", 8000, MODELS))
    assert severity == "warning"
    assert UNTIL in message
    assert {severity for severity, _ in found(platform(old_names), cluster, HEALTHY)} == {"ok"}


def test_without_a_front_door_nothing_is_asked(platform: MakePlatform, cluster: RecordedCluster) -> None:
    assert [*known_callers(RunningPlatform(platform(), cluster))] == []
    assert [*caller_certificates(platform())] == []


def test_forwarded_connections_begin_behind_the_sidecar(platform: MakePlatform) -> None:
    [behind, open_] = [platform(change).plan.models[0].deployments[0].entry_point for change in (door, None)]
    assert (forwarded_port(behind), forwarded_port(open_)) == (BEHIND_PORT, 8000)


def routes(
    platform: VerifiedPlatform, cluster: RecordedCluster, monkeypatch: pytest.MonkeyPatch, reason: str
) -> list[CheckResult]:
    """Return the lines about the model's own address, which gives this answer; empty for its models."""

    async def listed(_: str) -> ServedModels:
        if reason:
            raise ListingFailedError(reason)
        return ServedModels(("qwen3-32b",), "")

    monkeypatch.setattr(endpoint_checks, "_listed_models", listed)
    return [*endpoint_checks.routes(RunningPlatform(platform, cluster))]


def test_old_host_names_ask_for_a_key(
    platform: MakePlatform, cluster: RecordedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    [line] = routes(platform(door), cluster, monkeypatch, "HTTP 401")
    assert line.severity == "ok"
    [line] = routes(platform(door), cluster, monkeypatch, "")
    assert (line.severity, "gets around the front door" in line.message) == ("error", True)
    [line] = routes(platform(old_names), cluster, monkeypatch, "")
    assert line.severity == "ok"


class Secrets:
    """CloudFormation and Secrets Manager of an account with certificates of some ages, in days."""

    def __init__(self, *ages: int) -> None:
        self._ages = ages

    def get_paginator(self, _: str) -> Secrets:
        return self

    def paginate(self, *, StackName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        assert StackName.endswith("-Certificates")
        kind = "AWS::SecretsManager::Secret"
        names = ["CallersAuthority", *(f"CallersCertificate{place}" for place in range(len(self._ages)))]
        yield {
            "StackResourceSummaries": [
                {"LogicalResourceId": name, "ResourceType": kind, "PhysicalResourceId": str(place - 1)}
                for place, name in enumerate(names)
            ]
        }

    def describe_secret(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803
        age = timedelta(days=self._ages[int(SecretId)])
        return {"LastChangedDate": NOW - age, "Description": f"Certificate of spiffe://try/{SecretId}"}


@pytest.mark.parametrize(
    ("ages", "severity", "words"),
    [
        ((1, 8), "ok", "2 certificates"),
        ((1, 10), "error", "spiffe://try/1"),
        ((), "error", "has no certificates"),
    ],
)
def test_certificates_that_are_not_renewed_are_named(
    platform: MakePlatform, monkeypatch: pytest.MonkeyPatch, ages: tuple[int, ...], severity: str, words: str
) -> None:
    verified = platform(door)
    monkeypatch.setattr(type(verified.account), "client", lambda *_: Secrets(*ages))
    [line] = caller_certificates(verified)
    assert line.severity == severity
    assert words in line.message
    assert severity == "ok" or line.command
