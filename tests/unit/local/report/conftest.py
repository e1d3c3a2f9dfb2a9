"""The report of a replay, and its plan."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

import pytest
import yaml

from inference_blueprints.local.report import ModelRun, build_report
from inference_blueprints.resources import blueprints_directory
from tests.unit.local.report.samples import PARTS, summary_of


@pytest.fixture(scope="session")
def document():
    return yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def summary(document):
    return summary_of(document)


@pytest.fixture(scope="session")
def summary_of_two(document):
    """The quickstart with a second model, which has one replica in another pool."""
    changed = copy.deepcopy(document)
    changed["spec"]["pools"].append({"name": "second", "instanceTypes": ["g6e.xlarge"], "nodes": {"max": 1}})
    second = copy.deepcopy(changed["spec"]["models"][0])
    second["name"] = "other"
    second["deployments"][0]["aggregated"] |= {"pool": "second", "replicas": 1}
    changed["spec"]["models"].append(second)
    return summary_of(changed)


@pytest.fixture
def report_of(summary):
    def build(*runs: ModelRun, parts=PARTS, plan=summary, **others):
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
