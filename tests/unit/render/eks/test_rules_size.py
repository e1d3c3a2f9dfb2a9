"""A blueprint whose recording rules do not fit into an event of CloudFormation is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.cluster_targets import target_findings
from inference_blueprints.render.eks.rules_size import MAX_BYTES, rules_bytes
from inference_blueprints.render.monitoring.recording_rules import rule_groups, rules
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint

_PLATFORM = "p" * 20


def _many(
    shipped: str, models: int, deployments: int, letters: int, objectives: int, *, mixed: bool
) -> tuple[Blueprint, ServingPlan]:
    """Return a blueprint's model many times, and its plan, which is not built again."""
    blueprint = load_blueprint(shipped).blueprint
    model, part = blueprint.spec.models[0], build_plan(blueprint).models[0]
    sections, parts = [], []
    for number in range(models):
        name = f"m{number:03}".ljust(letters, "x")
        limit = {"time_to_first_token_p90_ms": 1001.0 + number % objectives}
        limit["time_per_output_token_p90_ms"] = 21.03 + number % objectives
        names = [f"d{each}" for each in range(deployments)]
        program: Mapping[str, Any] = (
            {"engine": type(model.engine).model_validate({"sglang": {}})} if mixed and number % 2 else {}
        )
        sections.append(
            model.model_copy(
                update={
                    "name": name,
                    "objectives": model.objectives.model_copy(update=limit),
                    "deployments": [model.deployments[0].model_copy(update={"name": each}) for each in names],
                    **program,
                }
            )
        )
        framework = "sglang" if program else part.deployments[0].framework
        planned = [
            dataclasses.replace(
                part.deployments[0], name=each, model=name, release=f"{name}-{each}", framework=framework
            )
            for each in names
        ]
        parts.append(dataclasses.replace(part, name=name, deployments=tuple(planned)))
    spec = blueprint.spec.model_copy(update={"models": sections})
    return blueprint.model_copy(update={"spec": spec}), ServingPlan(models=tuple(parts), node_systems={})


def _size(blueprint: Blueprint, plan: ServingPlan) -> int:
    """Return the bytes of the rules within an event: JSON within JSON."""
    objectives = {model.name: model.objectives for model in blueprint.spec.models}
    return len(json.dumps(json.dumps(rule_groups(rules(_PLATFORM, plan, objectives=objectives)))))


@pytest.mark.parametrize(
    ("shipped", "models", "deployments", "letters", "objectives", "mixed"),
    [
        ("elastic-g6e", 1, 1, 8, 1, False),
        ("elastic-g6e", 100, 5, 40, 1, False),
        ("elastic-g6e", 60, 2, 40, 60, False),
        ("elastic-g6e", 100, 1, 40, 2, True),
        ("p5en-disaggregated", 50, 5, 40, 1, True),
        ("p5en-disaggregated", 100, 5, 40, 100, False),
    ],
)
def test_the_bound_is_above_the_rules_and_not_far(
    shipped: str, models: int, deployments: int, letters: int, objectives: int, *, mixed: bool
) -> None:
    blueprint, plan = _many(shipped, models, deployments, letters, objectives, mixed=mixed)
    size = _size(blueprint, plan)
    assert size <= rules_bytes(blueprint) <= 2 * size


def test_too_many_models_are_refused_with_what_to_do() -> None:
    small, _ = _many("elastic-g6e", 100, 5, 12, 10, mixed=False)
    large, plan = _many("elastic-g6e", 100, 5, 40, 100, mixed=False)
    assert list(target_findings(small)) == []
    (finding,) = target_findings(large)
    assert finding.path == ("spec", "observability")
    assert "got 100 models with 500 sets of workers" in finding.message
    assert "equal objectives" in finding.message
    assert _size(large, plan) > MAX_BYTES


def test_without_observability_nothing_is_refused() -> None:
    large, _ = _many("elastic-g6e", 100, 5, 40, 100, mixed=False)
    spec = large.spec.model_copy(update={"observability": None})
    assert list(target_findings(large.model_copy(update={"spec": spec}))) == []
