"""Reserved calls of Lambda are known before a deployment fails on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.doctor import capacity_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from tests.unit.operate.faults import Faults
from tests.unit.operate.test_doctor_account import BATCH

Make = Callable[..., DoctorContext]


def with_batch(spec: dict[str, Any]) -> None:
    spec.update(BATCH)


@pytest.mark.parametrize(
    ("calls", "severity", "wanted"),
    [
        ((1000, 1000), "ok", None),
        ((1000, 652), "ok", None),
        # What others reserve is added to what batch needs.
        ((1000, 448), "warning", 1204),
        # The reduced quota of a new account.
        ((10, 10), "error", 1000),
    ],
)
def test_batch_needs_reserved_calls(
    make_context: Make, account: Account, calls: tuple[int, int], severity: str, wanted: int | None
) -> None:
    total, unreserved = calls
    limit = {"AccountLimit": {"ConcurrentExecutions": total, "UnreservedConcurrentExecutions": unreserved}}
    Faults((200, json.dumps(limit).encode())).into(account.client("lambda"), "GetAccountSettings")
    (finding,) = capacity_checks.reserved_calls(make_context(with_batch))
    assert finding.severity == severity
    assert (finding.command is None) == (wanted is None)
    assert wanted is None or f"L-B99A9384 --desired-value {wanted}" in (finding.command or "")


def test_without_batch_no_calls_are_reserved(make_context: Make) -> None:
    assert list(capacity_checks.reserved_calls(make_context())) == []


def test_the_canary_reserves_a_call_too(make_context: Make, account: Account) -> None:
    """Red if its call is left out: then the deployment of an account without spare calls fails."""

    def with_canary(spec: dict[str, Any]) -> None:
        spec.update(observability={"canary": {}})

    limit = {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 100}}
    Faults((200, json.dumps(limit).encode())).into(account.client("lambda"), "GetAccountSettings")
    (finding,) = capacity_checks.reserved_calls(make_context(with_canary))
    assert finding.severity == "warning"
    assert "reserves 1," in finding.message


def test_gpu_health_reserves_calls_too(make_context: Make, account: Account) -> None:
    def with_health(spec: dict[str, Any]) -> None:
        spec.update(observability={}, gpuHealth={})

    limit = {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 105}}
    Faults((200, json.dumps(limit).encode())).into(account.client("lambda"), "GetAccountSettings")
    (finding,) = capacity_checks.reserved_calls(make_context(with_health))
    assert finding.severity == "warning"
    assert "reserves 6," in finding.message
