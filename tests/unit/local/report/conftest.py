"""The report of a replay, and its plan."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.resources import blueprints_directory
from inference_local.report import ModelRun, Report, build_report
from inference_local.serving.platform_parts import PlatformPart
from tests.unit.local.report.samples import PARTS, summary_of

#: Builds a report of runs, with other parts of a report by name.
ReportOf = Callable[..., Report]


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    )
    return found


@pytest.fixture(scope="session")
def summary(document: dict[str, Any]) -> PlanSummary:
    return summary_of(document)


@pytest.fixture(scope="session")
def summary_of_two(document: dict[str, Any]) -> PlanSummary:
    """The quickstart with a second model, which has one replica in another pool."""
    changed = copy.deepcopy(document)
    changed["spec"]["pools"].append({"name": "second", "instanceTypes": ["g6e.xlarge"], "nodes": {"max": 1}})
    second = copy.deepcopy(changed["spec"]["models"][0])
    second["name"] = "other"
    second["deployments"][0]["aggregated"] |= {"pool": "second", "replicas": 1}
    changed["spec"]["models"].append(second)
    return summary_of(changed)


@pytest.fixture
def report_of(summary: PlanSummary) -> ReportOf:
    def build(
        *runs: ModelRun, parts: Sequence[PlatformPart] = PARTS, plan: PlanSummary = summary, **others: Any
    ) -> Report:
        created_at = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
        return build_report(
            blueprint="quickstart",
            created_at=created_at,
            summary=plan,
            runs=runs,
            parts=parts,
            **others,
        )

    return build
