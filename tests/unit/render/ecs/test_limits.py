"""Every limit of ECS is found in a blueprint that has it, and in no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.ecs_limits import ECS_LIMITS
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.spec.types import Frontend
from inference_catalog.ecs_hosts import fargate_size
from inference_contracts.errors import BlueprintError, Problem
from tests.unit.render.ecs.one_word import REFUSED, on_ecs

Document = dict[str, Any]


def _pool(**keys: Any) -> Callable[[Document], None]:
    return lambda spec: spec["pools"][0].update(keys)


def _spec(**keys: Any) -> Callable[[Document], None]:
    return lambda spec: spec.update(keys)


def _many_pools(spec: Document) -> None:
    spec["pools"] += [{**spec["pools"][0], "name": f"other-{index}"} for index in range(18)]


def _spot_with_fall_back(spec: Document) -> None:
    spec["pools"][0]["purchase"] = {"spot": {"onDemandFallback": True}}


def _sglang(spec: Document) -> None:
    spec["pools"][0]["instanceTypes"] = ["g6e.48xlarge"]
    model = spec["models"][0]
    model["engine"] = {"sglang": {}}
    model["deployments"][0]["aggregated"].update({"replicas": 1, "dataParallelSize": 2})


def _shifted_floors(spec: Document) -> None:
    floor = {"start": "0 8 * * *", "end": "0 20 * * *", "replicas": 2}
    workers = spec["models"][0]["deployments"][0]["aggregated"]
    workers.update({"replicas": {"min": 1, "max": 2}, "scaledBy": {"load": {"floors": [floor]}}})
    spec.update({"observability": {}, "capacityShift": {}})


def _two_hosts(spec: Document) -> None:
    model = spec["models"][0]
    model["deployments"][0]["aggregated"].update({"replicas": 1, "tensorParallelSize": 2})


def _neuron_types(spec: Document) -> None:
    """Give the pool hosts with one device and other vCPUs: ECS would place several tasks on the larger."""
    _on_neuron(spec, devices=1)
    spec["pools"][0]["instanceTypes"] = ["inf2.xlarge", "inf2.8xlarge"]


def _neuron_sizes(spec: Document) -> None:
    """Give the pool a worker with half of a host, and one with a third."""
    _on_neuron(spec, devices=6)
    [model] = spec["models"]
    other = {**model["deployments"][0], "name": "other"}
    other["aggregated"] = {**other["aggregated"], "tensorParallelSize": 4}
    model["deployments"].append(other)


def _neuron_health(spec: Document) -> None:
    _on_neuron(spec, devices=12)
    spec.update(observability={}, gpuHealth={})


def _on_neuron(spec: Document, *, devices: int) -> None:
    spec["pools"][0]["instanceTypes"] = ["inf2.48xlarge"]
    model = spec["models"][0]
    model["engine"] = {"vllmNeuron": {}}
    model["deployments"][0]["aggregated"].update({"tensorParallelSize": devices})


def _neuron_shared(spec: Document) -> None:
    _neuron_types(spec)
    spec["pools"][0].update({"shared": {}, "nodes": {"min": 1, "max": 1}})


#: What to change in the quickstart to meet a limit.
CASES: Mapping[str, Callable[[Document], None]] = {
    "llm-d": lambda spec: spec["models"][0].update({"stack": {"llmD": {}}}),
    "kueue": _spec(queueing={"kueue": {}}),
    "several-hosts": _two_hosts,
    "ebs-snapshot": _pool(imageAcceleration={"ebsSnapshot": {}}),
    "nv-sentinel": _pool(repairedBy="nvSentinel"),
    "efa-counts": _pool(instanceTypes=["g6e.24xlarge", "g6e.48xlarge"], efa=True),
    "pools": _many_pools,
    "reservation-tags": _pool(purchase={"reservation": {"tags": {"team": "serving"}}}),
    "arm64": _pool(instanceTypes=["g5g.2xlarge"]),
    "neuron-types": _neuron_types,
    "neuron-sizes": _neuron_sizes,
    "neuron-health": _neuron_health,
    "sglang-ranks": _sglang,
    "shifted-floors": _shifted_floors,
    "keys-of-eks": lambda spec: spec["cluster"]["ecs"].update({"extendedSupport": True}),
    "execute-command": lambda spec: spec["cluster"]["ecs"].update({"executeCommand": True}),
    "taints": _pool(taints=[{"key": "team"}]),
    "labels": _pool(labels={"team": "serving"}),
    "shared-elastic": _pool(shared={}),
    "shared-neuron": _neuron_shared,
    "fall-back": _spot_with_fall_back,
    "soci": _pool(imageAcceleration={"sociParallelPull": {}}),
}
#: Needs a section that the quickstart has not; `REFUSED` and the text below show it.
_OF_BATCH = "batch-pods"


def _problems(document: Document) -> list[Problem]:
    try:
        return list(parse_blueprint(yaml.safe_dump(document), "test.yaml").warnings)
    except BlueprintError as error:
        return error.problems


def _found(problems: list[Problem]) -> set[str]:
    messages = {limit.message: limit.name for limit in ECS_LIMITS}
    return {messages[each.message] for each in problems if each.message in messages}


@pytest.fixture
def document() -> Document:
    text = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    found: Document = yaml.safe_load(text)
    found["spec"]["cluster"] = {"ecs": {}}
    return found


def test_every_limit_has_a_case() -> None:
    assert {limit.name for limit in ECS_LIMITS} == {*CASES, _OF_BATCH}


def test_the_quickstart_meets_no_limit(document: Document) -> None:
    assert _found(_problems(document)) == set()


@pytest.mark.parametrize("name", CASES)
def test_a_blueprint_that_has_it_is_told(name: str, document: Document) -> None:
    CASES[name](document["spec"])
    problems = _problems(document)
    assert name in _found(problems), [str(each) for each in problems]


@pytest.mark.parametrize("name", CASES)
def test_it_is_no_limit_of_eks(name: str, document: Document) -> None:
    CASES[name](document["spec"])
    document["spec"]["cluster"] = {"eks": {"version": "1.35"}}
    assert _found(_problems(document)) == set()


def test_batch_has_no_pods() -> None:
    found = yaml.safe_load(on_ecs("batch-g6e"))
    found["spec"]["batch"]["workers"] = {"eks": {}}
    assert _OF_BATCH in _found(_problems(found))


@pytest.mark.parametrize(("managed", "told"), [("allowed", True), ("never", False)])
def test_pools_without_gpu_metrics_are_told(document: Document, managed: str, *, told: bool) -> None:
    document["spec"]["observability"] = {}
    document["spec"]["cluster"] = {"ecs": {"managedInstances": managed}}
    found = [each for each in _problems(document) if "exporter of GPU metrics" in each.message]
    assert [each.path for each in found] == (["spec.pools[0]"] if told else [])
    del document["spec"]["observability"]
    assert not [each for each in _problems(document) if "exporter of GPU metrics" in each.message]


@pytest.mark.parametrize(("owner", "told"), [("karpenter", True), ("gpuHealth", False)])
def test_pools_that_ecs_repairs_itself_are_told(document: Document, owner: str, *, told: bool) -> None:
    """A pool that GPU health repairs is an Auto Scaling group, which it can replace hosts of."""
    action = "replace" if owner == "gpuHealth" else "observe"
    document["spec"] |= {"observability": {}, "gpuHealth": {"action": action}}
    document["spec"]["pools"][0]["repairedBy"] = owner
    problems = _problems(document)
    assert not [each for each in problems if each.severity == "error"]
    found = [each for each in problems if "GPU health only records" in each.message]
    assert [each.path for each in found] == (["spec.pools[0]"] if told else [])


def test_pools_have_owners_of_their_own_without_karpenter(document: Document) -> None:
    (pool,) = document["spec"]["pools"]
    document["spec"]["pools"].append({**pool, "name": "other", "repairedBy": "gpuHealth"})
    document["spec"] |= {"observability": {}, "gpuHealth": {"action": "replace"}}
    assert not [each for each in _problems(document) if "Karpenter" in each.message]
    document["spec"]["cluster"] = {"eks": {"version": "1.35"}}
    document["spec"]["pools"][0].pop("disk", None)
    assert [each for each in _problems(document) if "node repair is on for all" in each.message]


def test_workers_of_batch_are_tasks_unless_the_file_chooses() -> None:
    assert not REFUSED["batch-g6e"]
    batch = parse_blueprint(on_ecs("batch-g6e"), "batch").blueprint.spec.batch
    assert batch is not None
    assert batch.workers.ecs is not None


@pytest.mark.parametrize("cpu", range(1, 15))
def test_every_frontend_that_a_file_may_ask_for_fits_a_task(cpu: int) -> None:
    for gib in range(2, 49):
        size = fargate_size(cpu, gib * 1024)
        assert size.cpu_units >= cpu * 1024
        assert size.memory_mib >= gib * 1024
    with pytest.raises(ValidationError):
        Frontend.model_validate({"cpu": 15})
    with pytest.raises(ValidationError):
        Frontend.model_validate({"memoryGib": 49})


def test_a_task_definition_that_is_too_large_is_refused(document: Document) -> None:
    document["spec"]["models"][0]["engine"] = {
        "vllm": {"env": {f"TEXT_{index}": "x" * 4096 for index in range(16)}}
    }
    [problem, *_] = [each for each in _problems(document) if "ECS takes 65,536" in each.message]
    assert problem.severity == "error"
    assert problem.path == "spec.models[0].engine"


def test_floors_that_scheduled_actions_cannot_keep_are_refused(document: Document) -> None:
    floor = {"start": "0 8 1 * *", "end": "0 9 1 * 1", "replicas": 2}
    workers = document["spec"]["models"][0]["deployments"][0]["aggregated"]
    workers["replicas"] = {"min": 1, "max": 2}
    document["spec"]["observability"] = {}
    workers["scaledBy"] = {"load": {"floors": [floor]}}
    problems = _problems(document)
    found = [each for each in problems if "Application Auto Scaling" in each.message]
    assert found, [str(each) for each in problems]
    assert found[0].path.startswith("spec.models[0].deployments[0].aggregated.scaledBy.load.floors")
