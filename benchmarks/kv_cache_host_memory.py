"""KV cache in the nodes' memory against none: documents that are asked about again, and conversations.

`documents` are the workers of long-context-kv-cache, Qwen3-32B on the eight H200 of a p5en, asked as its
blueprint says: 4 requests a second, prompts of 10,000 tokens, of which a document is 97 %, answers of 300;
8,000 requests. The GPUs together hold 200 documents if each lies once, their 180 GiB of memory a worker 470
more. `conversation` is the first five minutes of Mooncake's trace at three times its rate, as in
kv_aware_routing, on the same workers.

Values are with memory, baselines without, both behind the KV-aware router, which is told what lies in memory.
What is found there is copied at the simulator's 32 GB/s. All is simulated; NVMe, of which the simulator knows
nothing, is not counted. The goal is a tenth less end to end in the median where memory holds the documents.

A first question about a document is computed whichever way, and what is under way takes room too; the router
weighs what a worker has against its load, so that a document comes to lie on several and fewer are held. So
memory finds half of what is asked of 200 documents and a third of 400, against a third and a sixth without;
of 800 it finds what the GPUs alone find of 400. Of the conversations it finds 16 %, all that there is in so
short a part of the trace, against 11 % without; at three times the trace's rate these workers are overloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.harness.figure import Figure
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measurement.replay.recorded_trace import shipped_trace
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.simulation.offline_replay import (
    RecordedRequest,
    SimulatedReplay,
    SyntheticLoad,
    replay_recorded,
    replay_synthetic,
)
from inference_blueprints.simulation.simulated_workers import SimulatedWorkers, simulated_workers

_BLUEPRINT = "long-context-kv-cache"
_GOAL = 0.9
_WITH_GOAL = (200, 400)
_DOCUMENTS = (200, 400, 800)
_DOCUMENT_RATIO = 0.97
_REQUESTS = 8000
_SPEED = 3

_Workers = Sequence[SimulatedWorkers]


def measure() -> list[Figure]:
    """Take the measurement."""
    workers = _workers()
    figures = [figure for documents in _DOCUMENTS for figure in _documents(workers, documents)]
    return [*figures, *_conversation(workers)]


def _workers() -> _Workers:
    """Return the blueprint's workers as the simulated engine is told of them."""
    blueprint = load_blueprint(_BLUEPRINT).blueprint
    [deployment] = build_plan(blueprint).models[0].deployments
    return simulated_workers(resolve(blueprint, 0, 0), deployment.workers)


def _documents(workers: _Workers, documents: int) -> list[Figure]:
    workload = load_blueprint(_BLUEPRINT).blueprint.spec.models[0].workload
    load = SyntheticLoad(workload.input_tokens, workload.output_tokens, _DOCUMENT_RATIO, documents)
    return _compared(
        f"{documents} documents",
        lambda each: replay_synthetic(each, load, workload.peak_requests_per_second, _REQUESTS),
        workers,
        goal=_GOAL if documents in _WITH_GOAL else None,
    )


def _conversation(workers: _Workers) -> list[Figure]:
    trace = shipped_trace()
    room = workers[0].settings.max_model_len
    requests = [
        RecordedRequest(arrival / _SPEED, each.input_tokens, each.output_tokens, each.block_ids)
        for arrival, each in zip(trace.arrivals_seconds(), trace.requests, strict=True)
        if each.input_tokens + each.output_tokens <= room
    ]
    return _compared(
        f"conversation, {_SPEED} x its rate",
        lambda each: replay_recorded(each, requests, trace.block_tokens),
        workers,
        goal=None,
    )


def _compared(
    name: str, replayed: Callable[[_Workers], SimulatedReplay], workers: _Workers, goal: float | None
) -> list[Figure]:
    """Replay with memory and without, and return latencies and what was found of the prompts."""
    without = [replace(each, settings=replace(each.settings, host_kv_blocks=0)) for each in workers]
    kept, dropped = replayed(workers), replayed(without)

    def figure(what: str, value: float, baseline: float, unit: str, goal: float | None = None) -> Figure:
        return Figure(
            f"kv_cache_host_memory {name}, {what}", value, unit, baseline=baseline, goal=goal, simulated=True
        )

    first, first_dropped = kept.time_to_first_token, dropped.time_to_first_token
    whole, whole_dropped = kept.end_to_end, dropped.end_to_end
    return [
        figure("end to end p50", whole.p50, whole_dropped.p50, "ms", goal),
        figure("end to end p90", whole.p90, whole_dropped.p90, "ms"),
        figure("first token p50", first.p50, first_dropped.p50, "ms"),
        figure("first token p90", first.p90, first_dropped.p90, "ms"),
        figure("found of the prompts", 100 * kept.cached_ratio, 100 * dropped.cached_ratio, "%"),
    ]
