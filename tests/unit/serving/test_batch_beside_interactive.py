"""Where batch and interactive requests share workers, Dynamo's router makes batch wait."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from dynamo._core import KvRouterConfig

from inference_blueprints import resources
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import FilePath, ModelPlan
from inference_blueprints.spec.types import Blueprint

POLICY = "DYN_ROUTER_POLICY_CONFIG"
SCALE = "--router-prefill-load-scale"
DECAY = "--router-kv-overlap-score-credit-decay"


def plan(workers: dict[str, Any], **model: Any) -> ModelPlan:
    """Return the plan of batch-g6e's model with other workers of batch, and other keys of the model."""
    file = resources.blueprints_directory() / "batch-g6e.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["spec"]["batch"]["workers"] = workers
    document["spec"]["models"][0] |= model
    return build_plan(Blueprint.model_validate(document)).models[0]


@pytest.fixture
def shared() -> ModelPlan:
    """Return the plan of a model that batch shares with others."""
    return plan({})


def test_the_router_reads_its_classes_and_weighs_prompts_in_process(shared: ModelPlan, tmp_path: Any) -> None:
    frontend = shared.deployments[0].entry_point
    policy = frontend.environment[POLICY]
    assert isinstance(policy, FilePath)
    file = tmp_path / policy.name
    file.write_text(policy.text, encoding="utf-8")
    KvRouterConfig(router_policy_config=str(file))
    scale = float(frontend.arguments[frontend.arguments.index(SCALE) + 1])
    assert scale >= 4, "below it, first tokens come later"


def prefill_cost(decay: float, prompt: int, cached: int, in_process: int) -> float:
    """Return what a prompt costs on a worker beside one that is free, in tokens.

    The formula is that of ``lib/router-plugins/builtin/src/default/scorer.rs`` of ai-dynamo 1.6.1, where
    ``in_process`` is what the worker has in process.
    """
    return prompt - cached / (1 + decay * in_process / prompt) + in_process


def test_a_free_worker_wins_against_a_cached_half_but_not_against_a_long_prefix(shared: ModelPlan) -> None:
    arguments = shared.deployments[0].entry_point.arguments
    decay = float(arguments[arguments.index(DECAY) + 1])
    assert prefill_cost(decay, prompt=3000, cached=1500, in_process=1000) > 3000, "behind a prompt of batch"
    assert prefill_cost(decay, prompt=3000, cached=1500, in_process=0) < 3000, "with no prompt in process"
    assert prefill_cost(decay, prompt=8000, cached=7000, in_process=3000) < 8000, "nearly all of it is cached"


def test_the_class_of_batch_s_header_is_one_that_waits_for_free_workers(shared: ModelPlan) -> None:
    policy = shared.deployments[0].entry_point.environment[POLICY]
    assert isinstance(policy, FilePath)
    classes = {each["name"]: each for each in json.loads(policy.text)["policy_classes"]}
    batch = classes[shared.batch_headers["x-dynamo-meta-policy-class"]]
    assert batch["prefill_busy_threshold"] == 0
    assert "policy_family" not in batch, "a header reaches only a class without a family"
    interactive = [each for each in classes.values() if each is not batch]
    assert all("prefill_busy_threshold" not in each for each in interactive), "they never wait"


def test_vllm_runs_interactive_requests_first(shared: ModelPlan) -> None:
    worker = shared.deployments[0].workers[0]
    assert worker.arguments[worker.arguments.index("--scheduling-policy") + 1] == "priority"
    assert int(shared.batch_headers["x-dynamo-request-priority"]) < 0


@pytest.mark.parametrize(
    ("workers", "model"),
    [
        ({"latencyPercent": 0}, {}),
        ({}, {"routing": {"roundRobin": {}}}),
        ({}, {"stack": {"llmD": {}}}),
    ],
    ids=["only batch", "no KV-aware router", "llm-d"],
)
def test_elsewhere_nothing_changes(workers: dict[str, Any], model: dict[str, Any]) -> None:
    other = plan(workers, **model)
    assert not other.batch_headers
    entry_point, worker = other.deployments[0].processes[:2]
    assert POLICY not in entry_point.environment
    assert not {SCALE, DECAY} & set(entry_point.arguments)
    assert "--scheduling-policy" not in worker.arguments
