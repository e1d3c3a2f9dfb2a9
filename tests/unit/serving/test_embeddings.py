"""Embedding models: the arguments of their workers, their sizes and what they leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.report.plan.sections.tokens import EMBEDDING, TOKEN_PRICES, WITHOUT_PROFILE
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.performance import speeds
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.types import Blueprint
from inference_catalog.engine import Engine

Make = Callable[..., Blueprint]

STACK_SETTINGS: dict[str, dict[str, Any]] = {
    "dynamo": {"stack": {"dynamo": {}}, "routing": {"roundRobin": {}}},
    "llmD": {"stack": {"llmD": {}}},
}


def embedding(make_blueprint: Make, stack: str, **changes: Any) -> Blueprint:
    workload = {"inputTokens": 500, "outputTokens": 0, "sharedPrefixRatio": 0.0}
    settings = {"objectives": {}, **STACK_SETTINGS[stack], **changes}
    return make_blueprint(task="embed", workload=workload, **settings)


def worker_arguments(blueprint: Blueprint) -> tuple[str, ...]:
    return build_plan(blueprint).models[0].deployments[0].workers[0].arguments


@pytest.mark.parametrize("stack", STACK_SETTINGS)
def test_vllm_runs_its_pooling_runner(make_blueprint: Make, stack: str) -> None:
    """The runner is vLLM's; without the conversion, a causal architecture is only detected by its name."""
    words = worker_arguments(embedding(make_blueprint, stack))
    assert words[words.index("--runner") + 1] == "pooling"
    assert words[words.index("--convert") + 1] == "embed"


def test_only_dynamo_s_worker_gets_dynamo_s_switch(make_blueprint: Make) -> None:
    """``vllm serve`` has no such switch and would not start; Dynamo's worker would register for chat."""
    assert "--embedding-worker" in worker_arguments(embedding(make_blueprint, "dynamo"))
    assert "--embedding-worker" not in worker_arguments(embedding(make_blueprint, "llmD"))


@pytest.mark.parametrize("stack", STACK_SETTINGS)
def test_every_argument_is_one_of_the_release(make_blueprint: Make, stack: str) -> None:
    engine: Engine = catalog.engine("vllm")
    words = worker_arguments(embedding(make_blueprint, stack))
    named = {word for word in words if word.startswith("--")}
    assert named <= STACKS[stack].flags(engine).keys()


@pytest.mark.parametrize("stack", STACK_SETTINGS)
def test_there_are_no_parsers_and_no_events(make_blueprint: Make, stack: str) -> None:
    """The model of the quickstart has a format of answers, whose parsers a worker without chat refuses."""
    named = " ".join(worker_arguments(embedding(make_blueprint, stack)))
    for part in ("parser", "kv-events", "kv-transfer", "tool-choice", "prefix-caching", "speculative"):
        assert part not in named
    assert "parser" in " ".join(worker_arguments(make_blueprint(**STACK_SETTINGS[stack])))


def test_a_worker_is_sized_by_inputs(make_blueprint: Make) -> None:
    """Four times 500 tokens, rounded up to 1024; an answer would make it longer."""
    [resolved] = resolve(embedding(make_blueprint, "llmD"), 0, 0)
    assert worker_sizing(resolved).max_model_len == 2048


def test_the_speeds_of_answers_are_not_those_of_embeddings(make_blueprint: Make) -> None:
    """The quickstart's model has a latency profile, which was recorded while it wrote text."""
    blueprint = embedding(make_blueprint, "llmD")
    assert speeds(resolve(make_blueprint(), 0, 0)[0])
    assert speeds(resolve(blueprint, 0, 0)[0]) is None


def test_the_plan_names_embedding_models_and_prices_no_tokens(make_blueprint: Make) -> None:
    blueprint = embedding(make_blueprint, "llmD")
    summary = summarise(blueprint, build_plan(blueprint))
    assert summary[EMBEDDING] == (f"{blueprint.spec.models[0].name}/main",)
    assert (summary[TOKEN_PRICES], summary[WITHOUT_PROFILE]) == ((), ())


@pytest.mark.parametrize("stack", STACK_SETTINGS)
def test_an_embedding_model_passes_every_check(make_blueprint: Make, stack: str) -> None:
    found = serving_findings(embedding(make_blueprint, stack))
    assert [finding.message for finding in found if finding.severity == "error"] == []


def test_a_model_without_a_length_of_answers_is_checked_without_a_traceback(make_blueprint: Make) -> None:
    """A rule reports the missing key; until it is there, no rate can be computed from it."""
    blueprint = make_blueprint(workload={"outputTokens": 0})
    assert speeds(resolve(blueprint, 0, 0)[0]) is None
    assert [each for each in serving_findings(blueprint) if each.severity == "error"] == []
