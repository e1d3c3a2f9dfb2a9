"""Number and size of frontends: they follow from the workload, and a blueprint can set them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints import resources
from inference_blueprints.report.plan.sections.frontends import FRONTENDS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

LOAD = catalog.frontend_load("dynamo")


def size(blueprint: Blueprint) -> tuple[int, int, int]:
    frontend = build_plan(blueprint).models[0].deployments[0].entry_point
    return frontend.replicas, frontend.resources.cpu, frontend.resources.memory_mib


def workload(rate: float, prompt: int = 3000, answer: int = 200) -> dict[str, Any]:
    return {"peakRequestsPerSecond": rate, "inputTokens": prompt, "outputTokens": answer}


@pytest.mark.parametrize(
    ("rate", "prompt", "answer", "expected"),
    [
        (2, 3000, 200, (2, 1, 2048)),
        # 1.8 + 3 x 1.6 + 0.2 x 131 = 32.8 ms; 3.28 vCPUs in use, 6.56 in all
        (100, 3000, 200, (2, 4, 8192)),
        # Twice the answer: 59 ms, 11.8 vCPUs in all
        (100, 3000, 400, (3, 4, 8192)),
        # Ten times the prompt: 76 ms, 15.2 vCPUs in all
        (100, 30000, 200, (4, 4, 8192)),
        # 131.2 vCPUs in all
        (2000, 3000, 200, (33, 4, 8192)),
    ],
)
def test_the_size_follows_from_rate_and_lengths(
    make_blueprint: Make, rate: float, prompt: int, answer: int, expected: tuple[int, int, int]
) -> None:
    assert size(make_blueprint(workload=workload(rate, prompt, answer))) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"replicas": 3}, (3, 3, 6144)),
        ({"cpu": 2}, (4, 2, 4096)),
        ({"memoryGib": 5}, (2, 4, 5120)),
        ({"replicas": 1, "cpu": 1, "memoryGib": 2}, (1, 1, 2048)),
    ],
)
def test_keys_of_the_blueprint_count_first(
    make_blueprint: Make, keys: dict[str, int], expected: tuple[int, int, int]
) -> None:
    assert size(make_blueprint(workload=workload(100), frontend=keys)) == expected


def test_too_small_frontends_are_a_warning(make_blueprint: Make) -> None:
    def found(**keys: int) -> list[str]:
        blueprint = make_blueprint(workload=workload(100), frontend=keys)
        findings = [each for each in serving_findings(blueprint) if each.path[-1] == "frontend"]
        assert all(each.severity == "warning" for each in findings)
        return [each.message for each in findings]

    [message] = found(replicas=2, cpu=1)
    assert message.startswith("got 2 x 1 vCPUs, the peak of 'workload' needs 3.3 in deployment 'main'")
    assert found(replicas=4, cpu=1) == []


def test_several_deployments_share_the_peak(make_blueprint: Make) -> None:
    """Each has frontends for its own part of the requests only."""
    whole = make_blueprint(workload=workload(400))
    document = whole.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
    [model] = document["spec"]["models"]
    [first] = model["deployments"]
    model["deployments"] = [first, {**first, "name": "other"}]
    halves = build_plan(Blueprint.model_validate(document)).models[0].deployments
    assert [each.entry_point.resources.cpu for each in halves] == [4, 4]
    assert size(whole)[:2] == (7, 4)


def test_the_plan_shows_the_frontends_of_dynamo_only(make_blueprint: Make) -> None:
    [blueprint, other] = [
        make_blueprint(workload=workload(100), stack={name: {}}) for name in ("dynamo", "llmD")
    ]
    [shown] = summarise(blueprint, build_plan(blueprint))[FRONTENDS]
    assert (shown.replicas, shown.cpu, shown.memory_mib, shown.busy_cpu) == (2, 4, 8192, 3.28)
    assert summarise(other, build_plan(other))[FRONTENDS] == ()


def test_the_figures_are_those_of_the_benchmark() -> None:
    """Times of the recorded run; the machine is shared, so another run differs by some percent."""
    path = resources.root() / "benchmarks" / "results.json"
    entries = json.loads(path.read_text(encoding="utf-8"))["figures"]
    measured = {each["name"]: each["value"] for each in entries if each["name"].startswith("frontend_load")}
    assert measured == {
        "frontend_load": pytest.approx(LOAD.milliseconds_per_request, rel=0.5),
        "frontend_load_prompt": pytest.approx(LOAD.milliseconds_per_thousand_prompt_tokens, rel=0.5),
        "frontend_load_answer": pytest.approx(LOAD.milliseconds_per_thousand_answer_tokens, rel=0.5),
        "frontend_load_memory": pytest.approx(LOAD.memory_mib, rel=0.5),
    }
