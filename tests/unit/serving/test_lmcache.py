"""LMCache behind vLLM: which tiers a worker gets, in words that the release knows, on both stacks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo.vllm.kv_connector_protocols import NixlConnectorProtocol, make_kv_connector_protocol

from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]
GIB = 1024**3
RECORD = json.loads((Path(__file__).parent / "lmcache_flags.json").read_text(encoding="utf-8"))
STACKS: tuple[dict[str, Any], ...] = (
    {"dynamo": {}},
    {"llmD": {"prefixScorer": "precise"}},
    {"llmD": {"prefixScorer": "approximate"}},
)
ON_NVME = {"hostMemoryGib": 40, "nvme": {"gib": 200}}
WORKERS = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
TOGETHER = [{"name": "main", "aggregated": WORKERS}]
APART = [{"name": "main", "disaggregated": {"prefill": WORKERS, "decode": WORKERS}}]


def workers_of(make_blueprint: Make, **model: Any) -> tuple[Process, ...]:
    changes = {"instance_types": ["g6e.8xlarge"], "kvCache": ON_NVME, "deployments": TOGETHER} | model
    return build_plan(make_blueprint(**changes)).models[0].deployments[0].workers


def transfer_of(process: Process) -> dict[str, Any]:
    value = process.arguments[process.arguments.index("--kv-transfer-config") + 1]
    return dict(json.loads(value))


def server_arguments(connector: dict[str, Any]) -> dict[str, str]:
    """Return the server's arguments by flag; of a flag that comes twice, the last."""
    words = shlex.split(connector["kv_connector_extra_config"]["lmcache.mp.autostart.server_args"])
    return dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_every_word_is_one_of_the_release(stack: dict[str, Any], make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint, stack=stack)
    connector = transfer_of(worker)
    assert set(connector["kv_connector_extra_config"]) <= set(RECORD["connectorKeys"])
    arguments = server_arguments(connector)
    assert set(arguments) <= set(RECORD["flags"])
    adapter = json.loads(arguments["--l2-adapter"])
    assert set(adapter) <= set(RECORD["adapters"][adapter["type"]])
    assert set(adapter["eviction"]) <= set(RECORD["evictionKeys"])


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_what_lies_on_nvme_is_bounded_and_within_the_pods_disk(
    stack: dict[str, Any], make_blueprint: Make
) -> None:
    [worker] = workers_of(make_blueprint, stack=stack)
    arguments = server_arguments(transfer_of(worker))
    adapter = json.loads(arguments["--l2-adapter"])
    assert adapter["max_capacity_gb"] == 200
    assert adapter["eviction"]["eviction_policy"] == "LRU", "without it nothing is deleted"
    assert adapter["base_path"].startswith("/cache/"), (
        "the directory that the charts mount from the node's disk"
    )
    [without] = workers_of(make_blueprint, stack=stack, kvCache={"hostMemoryGib": 40})
    more = worker.resources.ephemeral_storage_mib - without.resources.ephemeral_storage_mib
    assert more == 200 * 1024


def test_memory_and_blocks_are_the_blueprints_and_the_routers(make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint)
    arguments = server_arguments(transfer_of(worker))
    assert arguments["--l1-size-gb"] == "40"
    assert worker.engine is not None
    assert arguments["--chunk-size"] == str(worker.engine.block_size)
    # Qwen3-8B keeps 147,456 bytes a token; a tier is filled to four fifths.
    assert worker.engine.host_kv_blocks == int(0.8 * 40 * GIB / 147_456) // 64


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_prefill_workers_keep_and_decode_workers_do_not(stack: dict[str, Any], make_blueprint: Make) -> None:
    prefill, decode = workers_of(make_blueprint, stack=stack, deployments=APART)
    names = [each["kv_connector"] for each in transfer_of(prefill)["kv_connector_extra_config"]["connectors"]]
    assert names == ["NixlConnector", "LMCacheMPConnector"]
    assert transfer_of(decode)["kv_connector"] == "NixlConnector"
    assert decode.resources.ephemeral_storage_mib == prefill.resources.ephemeral_storage_mib - 200 * 1024
    # Read at the top alone; blocks that a tier has lost are computed again.
    assert transfer_of(prefill)["kv_load_failure_policy"] == "recompute"


def test_dynamo_still_finds_what_moves_the_cache_between_the_roles(make_blueprint: Make) -> None:
    for worker in workers_of(make_blueprint, deployments=APART):
        configuration = SimpleNamespace(kv_transfer_config=SimpleNamespace(**transfer_of(worker)))
        assert isinstance(make_kv_connector_protocol(configuration), NixlConnectorProtocol)


def test_nothing_is_reported_to_lmcaches_authors(make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint)
    assert worker.environment["LMCACHE_TRACK_USAGE"] == "false"
    [without] = workers_of(make_blueprint, kvCache={"hostMemoryGib": 40})
    assert "LMCACHE_TRACK_USAGE" not in without.environment


def test_each_device_has_a_thread_that_copies(make_blueprint: Make) -> None:
    two = [{"name": "main", "aggregated": WORKERS | {"tensorParallelSize": 2}}]
    [worker] = workers_of(make_blueprint, instance_types=["g6e.12xlarge"], deployments=two)
    assert server_arguments(transfer_of(worker))["--max-workers"] == "2"


def test_the_server_takes_memory_of_its_own(make_blueprint: Make) -> None:
    def maximum(**cache: Any) -> int:
        blueprint = make_blueprint(
            instance_types=["g6e.8xlarge"], deployments=TOGETHER, kvCache={"hostMemoryGib": 24_576} | cache
        )
        return int(next(iter(serving_findings(blueprint))).message.rpartition("set at most ")[2])

    assert maximum() - maximum(nvme={}) == 8


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"deployments": APART}, ["warning"]),
        ({"deployments": APART, "kvCache": {"hostMemoryGib": 40}}, []),
        ({"deployments": APART, "routing": {"roundRobin": {}}}, []),
        ({"deployments": APART, "stack": {"llmD": {"prefixScorer": "precise"}}}, ["warning"]),
        ({"deployments": APART, "stack": {"llmD": {"prefixScorer": "approximate"}}}, []),
        ({}, []),
    ],
    ids=["apart", "memory alone", "round robin", "precise", "approximate", "together"],
)
def test_a_cache_that_the_router_does_not_learn_of_is_a_warning(
    changes: dict[str, Any], expected: list[str], make_blueprint: Make
) -> None:
    defaults = {"instance_types": ["g6e.16xlarge"], "kvCache": ON_NVME, "deployments": TOGETHER}
    found = [
        each
        for each in serving_findings(make_blueprint(**(defaults | changes)))
        if each.path == ("spec", "models", 0, "kvCache")
    ]
    assert [each.severity for each in found] == expected
    unseen = "the router does not see the KV cache that 'main/prefill' keeps"
    assert all(unseen in each.message for each in found)
