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
    assert SCALE not in entry_point.arguments
    assert "--scheduling-policy" not in worker.arguments
