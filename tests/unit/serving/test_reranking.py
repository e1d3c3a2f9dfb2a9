"""Reranking models and encoders: what may be asked of their classes, and the arguments of their workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.report.plan.sections.tokens import EMBEDDING
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.model_files import with_models
from inference_blueprints.spec.rule_table import rule_findings
from inference_blueprints.spec.sections.front_door.keys import FrontDoor
from inference_blueprints.spec.sections.front_door.rules import front_door_has_no_reranking_model
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.describe import describe

Make = Callable[..., Blueprint]

ENCODER = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "vocab_size": 250002,
    "max_position_embeddings": 8194,
}
RANKER, VECTORS = "acme/ranker", "acme/vectors"
WORKLOAD = {"inputTokens": 500, "outputTokens": 0, "sharedPrefixRatio": 0.0, "peakRequestsPerSecond": 1}
CLASSES = {RANKER: "XLMRobertaForSequenceClassification", VECTORS: "XLMRobertaModel"}


def encoder(name: str) -> catalog.Model:
    facts = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}
    counted = describe(ENCODER | {"architectures": [CLASSES[name]]})
    return model_entry(name, counted | facts, Path("encoder.json"))


def made(make_blueprint: Make, name: str, task: str, **changes: Any) -> Blueprint:
    settings = {
        "task": task,
        "weights": {"huggingFace": name},
        "workload": WORKLOAD,
        "objectives": {},
        "stack": {"direct": {}},
        "routing": {"leastRequests": {}},
    }
    return with_models(make_blueprint(**settings | changes), {each: encoder(each) for each in CLASSES})


def messages(blueprint: Blueprint) -> list[str]:
    return [finding.message for finding in rule_findings(blueprint) if finding.severity == "error"]


@pytest.mark.parametrize(("name", "task"), [(RANKER, "rerank"), (VECTORS, "embed")])
def test_an_encoder_passes_every_check_with_its_own_task(make_blueprint: Make, name: str, task: str) -> None:
    blueprint = made(make_blueprint, name, task)
    assert messages(blueprint) == []
    assert [each.message for each in serving_findings(blueprint) if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("name", "task", "does", "own"),
    [
        (RANKER, "generate", "scores texts", "rerank"),
        (RANKER, "embed", "scores texts", "rerank"),
        (VECTORS, "generate", "turns inputs into vectors", "embed"),
    ],
)
def test_another_task_is_refused_with_the_one_to_set(
    make_blueprint: Make, name: str, task: str, does: str, own: str
) -> None:
    workload = WORKLOAD | {"outputTokens": 20 if task == "generate" else 0}
    assert messages(made(make_blueprint, name, task, workload=workload)) == [
        f"got '{task}' for {name}, whose class {CLASSES[name]} only {does}; set 'task: {own}'"
    ]


def test_vllm_makes_a_classifier_of_a_class_that_writes(make_blueprint: Make) -> None:
    """It registers no Qwen3ForSequenceClassification, and loads Qwen3ForCausalLM for it."""
    name = "acme/qwen"
    counted = describe(
        ENCODER | {"architectures": ["Qwen3ForSequenceClassification"], "num_key_value_heads": 8}
    )
    facts = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}
    entry = model_entry(name, counted | facts, Path("qwen.json"))
    blueprint = with_models(made(make_blueprint, name, "rerank"), {name: entry})
    assert messages(blueprint) == []
    assert [each.message for each in serving_findings(blueprint) if each.severity == "error"] == []


def test_vllm_runs_its_pooling_runner_as_a_classifier(make_blueprint: Make) -> None:
    """vLLM documentation, "Pooling Models": scores are those of a classifier."""
    [worker] = build_plan(made(make_blueprint, RANKER, "rerank")).models[0].deployments[0].workers
    words = worker.arguments
    assert words[words.index("--runner") + 1] == "pooling"
    assert words[words.index("--convert") + 1] == "classify"
    named = {word for word in words if word.startswith("--")}
    assert named <= STACKS["direct"].flags(catalog.engine("vllm")).keys()
    assert not named & {"--embedding-worker", "--enable-prefix-caching"}


def test_the_plan_names_reranking_models_and_prices_no_tokens(make_blueprint: Make) -> None:
    blueprint = made(make_blueprint, RANKER, "rerank")
    assert summarise(blueprint, build_plan(blueprint))[EMBEDDING] == (
        f"{blueprint.spec.models[0].name}/main",
    )


def test_a_front_door_cannot_bound_the_cost_of_scores(make_blueprint: Make) -> None:
    blueprint = made(make_blueprint, RANKER, "rerank")
    door = FrontDoor.model_construct()
    spec = blueprint.spec.model_copy(update={"front_door": door})
    [finding] = front_door_has_no_reranking_model(spec)
    assert finding.path == ("spec", "models", 0, "task")
    assert "serve it in a platform without a front door" in finding.message
    assert list(front_door_has_no_reranking_model(blueprint.spec)) == []
