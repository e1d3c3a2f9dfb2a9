"""Finished replays with known numbers."""

from __future__ import annotations

from typing import Any

import inference_catalog as catalog
from inference_blueprints.measure.completions.completion_client import RequestOutcome, TokenUsage
from inference_blueprints.measure.replay.scaled_trace import scale, shipped_trace
from inference_blueprints.measure.replay.trace_replay import ReplayResult
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint, Objectives, Workload
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import (
    CapacityShiftOutcome,
    GpuHealthOutcome,
    LoadSample,
    ShiftRow,
)
from inference_local.report import ModelRun
from inference_local.scaling.scaling_outcome import ScalingDecision, ScalingOutcome, WorkerSample
from inference_local.serving.platform_parts import PlatformPart
from inference_local.signal_store import SignalCounts

WORKLOAD = Workload(input_tokens=3000, output_tokens=200, peak_requests_per_second=2.0)
PARTS = (
    PlatformPart("router", "real", "Dynamo's own"),
    PlatformPart("engine", "simulated", "latencies from a profile"),
    PlatformPart("CloudFormation", "emulated", "on this machine"),
    PlatformPart("controllers", "stubbed", "rendered and validated"),
)
BATCH_OUTCOME = BatchOutcome(
    queue="nightly",
    model="qwen3-8b",
    team="ads",
    state="completed",
    requests=200,
    completed=200,
    failed=0,
    lost=0,
    duplicated=0,
    cost_usd=0.08,
    seconds=31.4,
    workers_killed=2,
    signals=SignalCounts("captions", written=200, missing=0, wrong=0),
)
SCALING = ScalingOutcome(
    workers_min=1,
    workers_max=3,
    decisions=(
        ScalingDecision(30.0, "main/worker", 2, 1, {"queue-length": None}, 3, "too few answers"),
        ScalingDecision(31.0, "main/worker", 3, 1, {"queue-length": 4.0}, 3, "as before"),
    ),
    cut_streams=0,
    lost=0,
    requests=100,
    clients=None,
    gpu_hours=0.2,
    gpu_hours_at_most=0.3,
    unused_gpus={"qwen3-8b": 0.5},
    time_factor=15.0,
    start_seconds={"main/worker": 1.7},
    samples=(WorkerSample(0.0, 2, 1, 2), WorkerSample(30.0, 3, 1, 3)),
)
CAPACITY_SHIFT = CapacityShiftOutcome(
    decisions=(
        ShiftRow(0.0, 4, 0.0, 0, 9, ("forecast",)),
        ShiftRow(30.0, 8, 0.25, 6, 5, ("forecast", "lends_slowly")),
    ),
    changes=3,
    failed_runs=0,
    batch_completed=400,
    batch_lost=0,
    batch_seconds=61.0,
    ttft_p95_alone_ms=500.0,
    ttft_p95_beside_ms=525.0,
    ttft_p95_ratio=1.05,
    is_timed=True,
    time_factor=120.0,
    most_workers=12,
    workers=((0.0, 4), (20.0, 6), (40.0, 8)),
    load=(LoadSample(0.0, 10.0, 0.0), LoadSample(40.0, 60.0, 12.0)),
)
GPU_HEALTH = GpuHealthOutcome(
    injected=1,
    found=1,
    replaced=1,
    false_drains=0,
    cut_streams=0,
    seconds_to_serving=78.0,
    speed=0.5,
    node="l40s-node-1",
    replacement="l40s-node-9",
    replacement_requests=25,
    times={"slowed": 200.0, "confirmed": 246.0, "cordoned": 246.0, "replacing": 271.0, "done": 278.0},
    runs=20,
    failed_runs=0,
    streams=1621,
    time_factor=4.0,
    latencies={
        "worker-1": ((190.0, 38.0), (240.0, 78.0)),
        "worker-2": ((190.0, 39.0), (240.0, 40.0), (280.0, 41.0)),
    },
    slow_pod="worker-1",
)
PROMPT, ANSWER, CACHED = 1000, 101, 250


def answered(sent: float, first_token_ms: float, token_ms: float = 20.0) -> RequestOutcome:
    first = sent + first_token_ms / 1000
    last = first + (ANSWER - 1) * token_ms / 1000
    return RequestOutcome(sent, sent, first, last, last, TokenUsage(PROMPT, ANSWER, CACHED))


def failed(sent: float, reason: str, detail: str = "") -> RequestOutcome:
    return RequestOutcome(sent, sent, None, None, sent + 0.1, None, reason, detail)


def result_of(*outcomes: RequestOutcome, model: str = "qwen3-8b", elapsed: float = 100.0) -> ReplayResult:
    return ReplayResult(
        model=model,
        trace=shipped_trace(),
        workload=WORKLOAD,
        scaled=scale(shipped_trace(), WORKLOAD, 8192, seconds=60.0),
        outcomes=outcomes,
        template_tokens=9,
        elapsed_seconds=elapsed,
        client_cpu_share=0.1,
        lateness_p99_ms=1.0,
        seed=1,
    )


def run_of(result: ReplayResult, *, objectives: Objectives | None = None, profiled: bool = True) -> ModelRun:
    profile = catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm") if profiled else None
    assert profiled == (profile is not None)
    return ModelRun("http://127.0.0.1:4000/v1", result, (objectives or Objectives()).stated, profile)


def summary_of(document: dict[str, Any]) -> PlanSummary:
    blueprint = Blueprint.model_validate(document)
    return summarise(blueprint, build_plan(blueprint))
