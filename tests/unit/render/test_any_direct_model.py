"""Any model without a router has a plan that its nodes can hold, and both targets render it."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import Phase, given, settings

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.command_line import flag_values
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.nodes.node_share import node_capacity
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.types import ModelPlan, Process
from inference_blueprints.spec.types import Blueprint
from inference_catalog.neuron import device_groups
from tests.templates.direct_strategies import DirectModel, direct_models

REGION, ACCOUNT, POOL = "us-west-2", "111122223333", "apart"
MODELS = direct_models("model", POOL, REGION, ACCOUNT)
LIMITS: dict[str, Any] = {"database": None, "deadline": None, "derandomize": True, "phases": [Phase.generate]}


def loaded(drawn: DirectModel, cluster: dict[str, Any]) -> Blueprint:
    """Return the blueprint of a platform with this model alone; raises if it is refused."""
    pool = {"name": POOL, "instanceTypes": [each.name for each in drawn.types], "nodes": {"max": 4}}
    document = {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "drawn"},
        "spec": {
            "environment": {"region": REGION},
            "cluster": cluster,
            "pools": [pool | drawn.pool],
            "models": [drawn.model],
        },
    }
    return parse_blueprint(yaml.safe_dump(document), "drawn.yaml").blueprint


def planned(blueprint: Blueprint) -> tuple[ModelPlan, Process]:
    """Return the plan of the one model, and its workers."""
    [model] = build_plan(blueprint).models
    [deployment] = model.deployments
    [worker] = deployment.processes
    return model, worker


@settings(max_examples=60, **LIMITS)
@given(drawn=MODELS)
def test_its_workers_fit_each_type_of_their_pool(drawn: DirectModel) -> None:
    blueprint = loaded(drawn, {"eks": {"version": "1.35"}})
    model, worker = planned(blueprint)
    for kind in drawn.types:
        room, each = node_capacity(kind), max(1, kind.accelerator_count // drawn.sizes[0])
        assert each * worker.resources.memory_mib <= room.memory_mib
        assert worker.resources.cpu <= max(1, room.cpu // each)
        assert worker.resources.devices in (0, *(device_groups(kind) or range(1, kind.accelerator_count + 1)))
    assert deployment_values(model.deployments[0], weights_bucket="weights")


@settings(max_examples=60, **LIMITS)
@given(drawn=MODELS)
def test_its_server_takes_no_more_memory_than_it_has(drawn: DirectModel) -> None:
    blueprint = loaded(drawn, {"eks": {"version": "1.35"}})
    [resolved] = resolve(blueprint, 0, 0)
    _, worker = planned(blueprint)
    memory, values = worker_memory(resolved), flag_values(worker.arguments)
    on_devices = worker.resources.devices > 0
    total = memory.total_bytes if on_devices else worker.resources.memory_mib * 2**20
    assert memory.total_bytes <= total
    free = total - memory.weights_bytes - memory.activation_bytes - memory.reserved_bytes
    if "ctx-size" in values:
        longest, cached = 250, int(values["ctx-size"])
        assert cached // int(values["parallel"]) >= longest
    elif "max-model-len" in values:
        longest, places = int(values["max-model-len"]), int(values["max-num-seqs"])
        compiled = "num-gpu-blocks-override" in values
        cached = longest * places if compiled else longest
        assert longest >= 250
    else:
        cached = 0
    assert 0 <= cached * memory.kv_bytes_per_token <= free


@settings(max_examples=60, **LIMITS)
@given(drawn=MODELS)
def test_ecs_renders_it_unless_its_workers_share_neuron_devices_of_a_host(drawn: DirectModel) -> None:
    [kind, *_] = drawn.types
    shared = kind.device_resource == "aws.amazon.com/neuron" and kind.accelerator_count > drawn.sizes[0]
    if shared:
        return
    blueprint = loaded(drawn, {"ecs": {}})
    [model] = build_plan(blueprint).models
    [rendered] = EcsTarget(blueprint, build_plan(blueprint)).render(model)
    assert rendered.services
