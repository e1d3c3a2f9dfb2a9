"""How long EKS still supports the Kubernetes version of a blueprint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor import cluster_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext

Make = Callable[..., DoctorContext]


def checked(make_context: Make, day: str, *, extended: bool) -> CheckResult:
    """Check Kubernetes 1.34 on a day."""

    def change(spec: dict[str, Any]) -> None:
        spec["cluster"]["eks"].update(version="1.34", extendedSupport=extended)

    context = make_context(change)
    now = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    (finding,) = cluster_checks.kubernetes_support(replace(context, now=now))
    return finding


# Days of 1.34, from the calendar in the Amazon EKS User Guide.
@pytest.mark.parametrize(
    ("day", "extended", "severity", "words"),
    [
        ("2026-10-02", False, "ok", "until 2026-12-02"),
        ("2026-10-03", False, "warning", "EKS then updates the cluster itself"),
        ("2026-12-01", True, "warning", "it costs 0.50 USD more per hour (365 a month) from then on"),
        ("2026-12-02", False, "error", "or extendedSupport: true for a higher price"),
        ("2026-12-02", True, "warning", "costs 0.50 USD more per hour (365 a month) and ends on 2027-12-02"),
        ("2027-12-02", True, "error", "EKS has not supported 1.34 since 2027-12-02"),
    ],
)
def test_support_on_a_day(make_context: Make, day: str, *, extended: bool, severity: str, words: str) -> None:
    finding = checked(make_context, day, extended=extended)
    assert finding.severity == severity
    assert words in finding.message
    assert finding.command == (None if severity == "ok" else "blueprints upgrade a.yaml")


def test_extended_support_costs_six_times_as_much() -> None:
    prices = catalog.service_prices()
    assert prices.usd("eks_cluster") + prices.usd("eks_extended_support") == pytest.approx(0.60)
