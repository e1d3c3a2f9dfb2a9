"""The offline replay tells the simulated engine what the plan says, and charges for what it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.simulation.offline_replay import (
    MissingProfileError,
    SyntheticLoad,
    engine_options,
    replay_synthetic,
)
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers, simulated_workers
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.spec.types import Blueprint

LOAD = SyntheticLoad(input_tokens=3000, output_tokens=20)


@pytest.fixture(scope="module")
def workers() -> tuple[SimulatedWorkers, ...]:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    deployment = build_plan(blueprint).models[0].deployments[0]
    return simulated_workers(resolve(blueprint, 0, 0), deployment.workers)


def test_the_engines_have_the_figures_of_the_plan(
    workers: tuple[SimulatedWorkers, ...], tmp_path: Path
) -> None:
    options = engine_options(workers, tmp_path)
    assert (options["num_prefill_workers"], options["num_decode_workers"]) == (12, 1)
    engine, settings = options["decode_engine_args"]["engine"], workers[1].settings
    assert engine["num_gpu_blocks"] == settings.kv_blocks
    assert engine["max_num_seqs"] == settings.max_num_seqs
    assert engine["worker_type"] == "decode"
    assert engine["kv_transfer_bytes_per_token"] == 262_144
    assert engine["kv_transfer_bandwidth"] == 50.0, "an eighth of 3,200 Gbit/s, in GB/s"


@pytest.mark.parametrize(
    ("engine", "backend", "own"),
    [("sglang", "sglang", {"chunked_prefill_size": 8192}), ("tensorrtLlm", "trtllm", {})],
)
def test_the_engines_schedule_like_the_plans(
    engine: str, backend: str, own: dict[str, int], workers: tuple[SimulatedWorkers, ...], tmp_path: Path
) -> None:
    others = [replace(each, settings=replace(each.settings, engine=engine)) for each in workers]
    for arguments in ("prefill_engine_args", "decode_engine_args"):
        simulated = engine_options(others, tmp_path)[arguments]["engine"]
        assert simulated["backend"] == backend
        assert own.items() <= (simulated.get(backend) or {}).items()
    assert replay_synthetic(others, LOAD, 2.0, 10).requests_per_second > 1


def changed(instance_type: str, **model: Any) -> tuple[SimulatedWorkers, ResolvedWorkers]:
    """Return the workers of the quickstart with another pool and another model."""
    path = resources.blueprints_directory() / "quickstart-g6e.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    [pool], [section] = document["spec"]["pools"], document["spec"]["models"]
    pool["instanceTypes"] = [instance_type]
    section["deployments"][0]["aggregated"] |= model.pop("aggregated", {})
    section |= model
    blueprint = Blueprint.model_validate(document)
    [resolved] = resolve(blueprint, 0, 0)
    [workers] = simulated_workers([resolved], build_plan(blueprint).models[0].deployments[0].workers)
    return workers, resolved


@pytest.mark.parametrize(
    ("instance_type", "model", "expected"),
    [
        ("g6e.2xlarge", {}, 147_456),
        ("g6e.2xlarge", {"kvCacheType": "fp8"}, 73_728),
        (
            "p5en.48xlarge",
            {"aggregated": {"tensorParallelSize": 4, "pipelineParallelSize": 2}},
            147_456,
        ),
    ],
    ids=["16 bits", "FP8", "stages"],
)
def test_a_token_of_the_cache_has_the_bytes_of_the_plan(
    instance_type: str, model: dict[str, Any], expected: int
) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B"}
    assert changed(instance_type, weights=weights, **model)[0].kv_bytes_per_token == expected


def test_a_cache_with_windows_is_counted_by_the_engine_s_rules() -> None:
    workers, resolved = changed("g6e.2xlarge", weights={"huggingFace": "openai/gpt-oss-20b"})
    assert workers.kv_bytes_per_token == round(worker_memory(resolved).kv_bytes_per_token)
    assert workers.kv_bytes_per_token != round(resolved.shape.kv_bytes_per_token())


def test_one_kind_of_worker_moves_no_cache(tmp_path: Path) -> None:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    deployment = build_plan(blueprint).models[0].deployments[0]
    options = engine_options(simulated_workers(resolve(blueprint, 0, 0), deployment.workers), tmp_path)
    assert options["num_workers"] == 2
    assert options["extra_engine_args"]["engine"]["kv_transfer_bandwidth"] is None


def test_a_slow_network_is_charged_for(workers: tuple[SimulatedWorkers, ...]) -> None:
    slow = [replace(each, transfer_bytes_per_second=1e9) for each in workers]
    fast, charged = (replay_synthetic(each, LOAD, 1.0, 10) for each in (workers, slow))
    added = charged.time_to_first_token.p50 - fast.time_to_first_token.p50
    assert added == pytest.approx(3000 * 262_144 / 1e9 * 1000 - 3000 * 262_144 / 50e9 * 1000, rel=0.1)


def test_the_same_arrivals_give_the_same_figures(workers: tuple[SimulatedWorkers, ...]) -> None:
    assert replay_synthetic(workers, LOAD, 5.0, 50) == replay_synthetic(workers, LOAD, 5.0, 50)


def test_a_shared_prefix_is_found_by_the_kv_aware_router_more_often() -> None:
    blueprint = load_blueprint("p5en-cluster").blueprint
    deployment = build_plan(blueprint).models[0].deployments[0]
    workers = simulated_workers(resolve(blueprint, 0, 0), deployment.workers)
    load = replace(LOAD, shared_prefix_ratio=0.9, prefix_groups=50)
    aware = replay_synthetic(workers, load, 5.0, 300)
    in_turn = replay_synthetic(workers, load, 5.0, 300, router="round_robin")
    assert aware.cached_ratio > in_turn.cached_ratio + 0.1
    assert aware.time_to_first_token.p50 < in_turn.time_to_first_token.p50


def test_what_the_nodes_memory_keeps_is_found_again() -> None:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    deployment = build_plan(blueprint).models[0].deployments[0]
    workers = simulated_workers(resolve(blueprint, 0, 0), deployment.workers)
    # More prefixes than the accelerators hold, and fewer than the nodes' memory does.
    load = replace(LOAD, shared_prefix_ratio=0.9, prefix_groups=120)
    keeping = [replace(each, settings=replace(each.settings, host_kv_blocks=8000)) for each in workers]
    without, kept = (replay_synthetic(each, load, 2.0, 600) for each in (workers, keeping))
    assert kept.cached_ratio > without.cached_ratio + 0.1
    assert kept.time_to_first_token.p50 < without.time_to_first_token.p50


def test_nothing_is_said_of_workers_without_speeds(workers: tuple[SimulatedWorkers, ...]) -> None:
    unknown = [replace(each, profile=None) for each in workers]
    with pytest.raises(MissingProfileError, match="prefill: no latency profile for 1 devices"):
        replay_synthetic(unknown, LOAD, 1.0, 10)
