"""KV cache in the memory of the node: what the engine is told, what the pod gets, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo.vllm.kv_connector_protocols import NixlConnectorProtocol, make_kv_connector_protocol

from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import OwnAddress, Process
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]
GIB = 1024**3
PLACE = ("spec", "models", 0, "kvCache", "hostMemoryGib")
OFFLOADING = {
    "kv_connector": "OffloadingConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {"cpu_bytes_to_use": 30 * GIB, "self_describing_kv_events": True},
}
RECOMPUTED = {"kv_load_failure_policy": "recompute"}


def with_cache(make_blueprint: Make, gib: int, **changes: Any) -> Blueprint:
    """Return quickstart on a node with memory enough, with so much of it for KV cache."""
    changes = {"instance_types": ["g6e.4xlarge"]} | changes
    return make_blueprint(kvCache={"hostMemoryGib": gib}, **changes)


def apart(make_blueprint: Make, gib: int, **changes: Any) -> Blueprint:
    """Return the same with prefill and decode in workers of their own."""
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
    deployment = {"name": "main", "disaggregated": {"prefill": workers, "decode": workers}}
    changes = {"instance_types": ["g6e.8xlarge"]} | changes
    return with_cache(make_blueprint, gib, deployments=[deployment], **changes)


def workers_of(blueprint: Blueprint) -> tuple[Process, ...]:
    return build_plan(blueprint).models[0].deployments[0].workers


def transfer_of(process: Process) -> dict[str, Any]:
    value = process.arguments[process.arguments.index("--kv-transfer-config") + 1]
    return dict(json.loads(value))


def of_the_cache(blueprint: Blueprint) -> list[tuple[str, str]]:
    """Return what is found of the key itself: how severe, and the message."""
    return [(each.severity, each.message) for each in serving_findings(blueprint) if each.path == PLACE]


def test_without_the_key_nothing_is_kept(make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint())
    assert "--kv-transfer-config" not in worker.arguments
    assert worker.engine is not None
    assert worker.engine.host_kv_blocks == 0


def test_an_aggregated_worker_keeps_its_cache_in_the_nodes_memory(make_blueprint: Make) -> None:
    [worker] = workers_of(with_cache(make_blueprint, 30))
    assert transfer_of(worker) == {**OFFLOADING, **RECOMPUTED}
    # Qwen3-8B: 36 layers, 8 heads of 128 numbers of two bytes, keys and values.
    assert worker.engine is not None
    assert worker.engine.host_kv_blocks == 30 * GIB // (36 * 8 * 128 * 2 * 2) // 64


def test_devices_that_share_layers_share_the_memory(make_blueprint: Make) -> None:
    two = {"tensorParallelSize": 2}
    [worker] = workers_of(with_cache(make_blueprint, 30, instance_types=["g6e.12xlarge"], aggregated=two))
    assert worker.engine is not None
    assert worker.engine.host_kv_blocks == 30 * GIB // (36 * 8 * 128 * 2 * 2) // 64


def test_of_a_latent_that_all_devices_hold_one_copy_is_kept(make_blueprint: Make) -> None:
    blueprint = with_cache(
        make_blueprint,
        100,
        instance_types=["p5en.48xlarge"],
        aggregated={"tensorParallelSize": 8, "replicas": 1},
        weights={"huggingFace": "deepseek-ai/DeepSeek-V3"},
    )
    [worker] = workers_of(blueprint)
    assert worker.engine is not None
    assert worker.engine.host_kv_blocks == 100 * GIB // (61 * 576 * 2) // 64


def test_the_cache_lies_in_shared_memory_within_the_workers_memory(make_blueprint: Make) -> None:
    [without], [kept] = (
        workers_of(make_blueprint(instance_types=["g6e.4xlarge"])),
        workers_of(with_cache(make_blueprint, 80)),
    )
    assert kept.resources.memory_mib == without.resources.memory_mib, "a worker has its share of the node"
    beside = kept.resources.shared_memory_mib - 80 * 1024
    assert beside == (kept.resources.memory_mib - 80 * 1024) // 4


def test_prefill_workers_send_and_keep_and_decode_workers_receive(make_blueprint: Make) -> None:
    prefill, decode = workers_of(apart(make_blueprint, 30))
    between = {"kv_connector": "NixlConnector", "kv_buffer_device": "cpu"}
    assert transfer_of(decode) == {**between, **RECOMPUTED, "kv_role": "kv_consumer"}
    assert transfer_of(prefill) == {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"connectors": [{**between, "kv_role": "kv_producer"}, OFFLOADING]},
        **RECOMPUTED,
    }
    assert decode.engine is not None
    assert decode.engine.host_kv_blocks == 0


def test_dynamo_finds_what_moves_the_cache_between_the_roles(make_blueprint: Make) -> None:
    prefill, decode = workers_of(apart(make_blueprint, 30))
    for worker in (prefill, decode):
        configuration = SimpleNamespace(kv_transfer_config=SimpleNamespace(**transfer_of(worker)))
        assert isinstance(make_kv_connector_protocol(configuration), NixlConnectorProtocol)
    # Among several connectors, Dynamo does not look for the address at which NIXL is asked.
    assert prefill.environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] == OwnAddress()


@pytest.mark.parametrize("make", [with_cache, apart])
def test_what_an_error_says_would_fit_does(make: Callable[..., Blueprint], make_blueprint: Make) -> None:
    [(severity, message)] = of_the_cache(make(make_blueprint, 24_576))
    assert severity == "error"
    assert message.startswith("got 24576, but a worker of 'main")
    maximum = int(message.rpartition("set at most ")[2])
    assert [severity for severity, _ in of_the_cache(make(make_blueprint, maximum))] in ([], ["warning"])
    [(severity, _)] = of_the_cache(make(make_blueprint, maximum + 1))
    assert severity == "error"


def test_blocks_that_wait_in_host_memory_to_be_sent_leave_less_of_it(make_blueprint: Make) -> None:
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
    together = [{"name": "main", "aggregated": workers}]
    [(_, alone)] = of_the_cache(
        with_cache(make_blueprint, 24_576, instance_types=["g6e.8xlarge"], deployments=together)
    )
    [(_, sent)] = of_the_cache(apart(make_blueprint, 24_576))
    assert int(sent.rpartition(" ")[2]) < int(alone.rpartition(" ")[2]) - 15


def test_a_node_without_memory_to_spare_is_no_place_for_it(make_blueprint: Make) -> None:
    [(severity, message)] = of_the_cache(apart(make_blueprint, 1, instance_types=["g6e.xlarge"]))
    assert severity == "error"
    assert message == (
        "got 1, but a worker of 'main/prefill' gets 27 GiB of a node's memory in pool 'l40s', of which the "
        "engine itself takes 37 GiB; leave kvCache out, or take a type with more memory"
    )


def test_less_than_the_accelerators_hold_is_doubted(make_blueprint: Make) -> None:
    [(severity, message)] = of_the_cache(with_cache(make_blueprint, 2))
    assert severity == "warning"
    enough = int(message.partition("set ")[2].split()[0])
    assert of_the_cache(with_cache(make_blueprint, enough)) == []


def test_a_cache_in_which_nothing_is_looked_up_is_refused(make_blueprint: Make) -> None:
    engine = {"vllm": {"args": {"enable-prefix-caching": False}}}
    routing: dict[str, Any] = {"roundRobin": {}}
    [finding] = serving_findings(with_cache(make_blueprint, 44, engine=engine, routing=routing))
    assert finding.path == ("spec", "models", 0, "engine", "vllm", "args", "enable-prefix-caching")
    assert finding.message.startswith("got false, but 'kvCache' needs the prefix cache")
