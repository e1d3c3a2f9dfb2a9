"""KV cache in the memory of the node as SGLang keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inference_blueprints.measure.simulation.simulated_workers import scheduler_of
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]
GIB, GB = 1024**3, 10**9
WORKERS = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
APART = [{"name": "main", "disaggregated": {"prefill": WORKERS, "decode": WORKERS}}]


def workers_of(make_blueprint: Make, gib: int = 30, **model: Any) -> tuple[Process, ...]:
    changes = {"instance_types": ["g6e.8xlarge"], "engine": {"sglang": {}}} | model
    kept = {"kvCache": {"hostMemoryGib": gib}} if gib else {}
    return build_plan(make_blueprint(**changes, **kept)).models[0].deployments[0].workers


def size_of(worker: Process) -> int:
    """Return the gigabytes that each device is told to take."""
    assert "--enable-hierarchical-cache" in worker.arguments
    return int(worker.arguments[worker.arguments.index("--hicache-size") + 1])


def test_without_the_key_nothing_is_kept(make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint, 0)
    assert "--enable-hierarchical-cache" not in worker.arguments


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_devices_share_the_memory_in_whole_gigabytes(devices: int, make_blueprint: Make) -> None:
    changes: dict[str, Any] = {
        "instance_types": ["g6e.12xlarge"],
        "aggregated": {"tensorParallelSize": devices},
    }
    [worker] = workers_of(make_blueprint, **changes)
    assert size_of(worker) == 30 * GIB // devices // GB
    assert worker.engine is not None
    # Qwen3-8B keeps 147,456 bytes a token, divided among the devices.
    assert worker.engine.host_kv_blocks == size_of(worker) * GB * devices // 147_456 // 64


def test_of_a_latent_each_device_keeps_a_copy(make_blueprint: Make) -> None:
    [worker] = workers_of(
        make_blueprint,
        800,
        instance_types=["p5en.48xlarge"],
        aggregated={"tensorParallelSize": 8, "replicas": 1},
        weights={"huggingFace": "deepseek-ai/DeepSeek-V3"},
    )
    assert worker.engine is not None
    assert worker.engine.host_kv_blocks == size_of(worker) * GB // (61 * 576 * 2) // 64


def test_less_than_a_gigabyte_a_device_is_one(make_blueprint: Make) -> None:
    changes: dict[str, Any] = {"instance_types": ["g6e.12xlarge"], "aggregated": {"tensorParallelSize": 4}}
    [worker] = workers_of(make_blueprint, 1, **changes)
    assert size_of(worker) == 1, "0 is twice what the device holds"


def test_prefill_workers_keep_and_decode_workers_do_not(make_blueprint: Make) -> None:
    prefill, decode = workers_of(make_blueprint, deployments=APART)
    assert size_of(prefill) == 30 * GIB // GB
    assert "--enable-hierarchical-cache" not in decode.arguments


def test_it_wants_memory_left_free(make_blueprint: Make) -> None:
    def maximum(engine: str) -> int:
        blueprint = make_blueprint(
            instance_types=["g6e.8xlarge"], engine={engine: {}}, kvCache={"hostMemoryGib": 24_576}
        )
        return int(next(iter(serving_findings(blueprint))).message.rpartition("set at most ")[2])

    assert maximum("vllm") - maximum("sglang") == 10


def test_only_vllms_memory_is_simulated(make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint)
    assert worker.engine is not None
    assert scheduler_of(worker.engine).host_blocks == 0
    as_vllm = replace(worker.engine, engine="vllm")
    assert scheduler_of(as_vllm).host_blocks == worker.engine.host_kv_blocks > 0
