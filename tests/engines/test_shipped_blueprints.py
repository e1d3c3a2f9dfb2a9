"""Every distinct worker of the shipped blueprints starts on real vLLM and answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint
from tests.engines.running import running_engines

pytestmark = pytest.mark.engines

_PROMPT = "one two three four five six seven " * 40


def _commands(plan: ServingPlan) -> frozenset[tuple[str, ...]]:
    """Return how the workers of a plan are started."""
    return frozenset(
        (*worker.command, *worker.arguments)
        for model in plan.models
        for deployment in model.deployments
        for worker in deployment.workers
    )


def _distinct() -> Iterator[str]:
    """Yield the shipped blueprints for vLLM, each kind of worker once."""
    seen: set[frozenset[tuple[str, ...]]] = set()
    for name in shipped():
        blueprint = load_blueprint(name).blueprint
        if {model.engine.chosen for model in blueprint.spec.models} == {"vllm"}:
            commands = _commands(build_plan(blueprint))
            if commands not in seen:
                seen.add(commands)
                yield name


def _with_one_worker_per_role(blueprint: Blueprint) -> Blueprint:
    """Return a copy in which each role has one worker."""
    document = blueprint.model_dump(by_alias=True, exclude_unset=True)
    for model in document["spec"]["models"]:
        for deployment in model["deployments"]:
            aggregated = deployment.get("aggregated")
            for workers in [aggregated] if aggregated else deployment["disaggregated"].values():
                workers["replicas"] = 1
    return Blueprint.model_validate(document)


@pytest.mark.parametrize("name", list(_distinct()))
def test_planned_workers_start_and_answer(name: str, tmp_path: Path) -> None:
    """The workers of a shipped blueprint start with the plan's arguments, and each model answers."""
    blueprint = _with_one_worker_per_role(load_blueprint(name).blueprint)
    with running_engines(blueprint, tmp_path) as running:
        for endpoint in running.endpoints:
            with OpenAI(base_url=endpoint.base_url, api_key="none", timeout=600, max_retries=0) as client:
                answer = client.chat.completions.create(
                    model=endpoint.model,
                    messages=[{"role": "user", "content": _PROMPT}],
                    max_tokens=8,
                    extra_body={"ignore_eos": True},
                )
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 8
            assert answer.usage.prompt_tokens > 100
            assert answer.choices[0].finish_reason == "length"
        engines = [part for part in running.serving.parts() if part.name.startswith("Engines of")]
        assert engines
        assert {part.state for part in engines} == {"real"}
