"""Metrics that are dropped, and the count of those that stay, over recorded answers of real programs.

`recorded/` holds GET /metrics of a frontend of ai-dynamo 1.6.1 with two workers and KV-aware routing, and of
one of its workers on vLLM 0.31.0, without comments.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inference_catalog.catalogue import shipped
from inference_catalog.serving_metrics import DroppedMetrics

RECORDED = Path(__file__).parent / "recorded"
WORKERS = 2
#: Of the default collectors of prometheus_client, which `vllm serve` has and Dynamo's worker has not.
OF_PYTHON = ("process_cpu_seconds_total", "python_gc_objects_collected_total")


def names(program: str) -> list[str]:
    """Return the metric of each recorded series."""
    lines = (RECORDED / f"{program}.prom").read_text(encoding="utf-8").splitlines()
    return [re.split("[{ ]", line)[0] for line in lines if line]


def kept(program: str) -> list[str]:
    dropped = re.compile(shipped().serving_metrics.dropped_names)
    return [name for name in names(program) if not dropped.fullmatch(name)]


def test_the_count_is_that_of_the_recorded_series() -> None:
    series = shipped().serving_metrics.series
    frontend = kept("dynamo_frontend")
    per_worker = [name for name in frontend if name.startswith("dynamo_frontend_worker_")]
    assert len(per_worker) == series["dynamo_frontend_per_worker"] * WORKERS
    assert len(frontend) - len(per_worker) == series["dynamo_frontend"]
    assert len(kept("vllm_worker")) == series["vllm_worker"]
    recorded = Path(__file__).parents[2] / "local/monitoring/recorded/dcgm_l40s_idle.prom"
    of_gpu = [line for line in recorded.read_text("utf-8").splitlines() if line and line[0] != "#"]
    assert len(of_gpu) == series["dcgm_gpu"]


@pytest.mark.parametrize("metrics", shipped().serving_metrics.dropped, ids=lambda each: each.pattern)
def test_each_pattern_drops_something(metrics: DroppedMetrics) -> None:
    pattern = re.compile(metrics.pattern)
    recorded = [*names("dynamo_frontend"), *names("vllm_worker"), *OF_PYTHON]
    assert any(pattern.fullmatch(name) for name in recorded)


def test_more_than_half_of_the_series_are_dropped_and_what_people_ask_for_stays() -> None:
    assert len(kept("dynamo_frontend")) < len(names("dynamo_frontend")) / 2
    assert {
        "dynamo_frontend_inflight_requests",
        "dynamo_frontend_inter_token_latency_seconds_bucket",
        "dynamo_frontend_queued_requests",
        "dynamo_frontend_requests_total",
        "dynamo_frontend_time_to_first_token_seconds_bucket",
        "dynamo_frontend_worker_active_decode_blocks",
        "dynamo_frontend_worker_active_prefill_tokens",
    } <= set(kept("dynamo_frontend"))
    assert {
        "vllm:generation_tokens_total",
        "vllm:inter_token_latency_seconds_bucket",
        "vllm:kv_cache_usage_perc",
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:prefix_cache_hits_total",
        "vllm:prompt_tokens_total",
        "vllm:time_to_first_token_seconds_bucket",
    } <= set(kept("vllm_worker"))
