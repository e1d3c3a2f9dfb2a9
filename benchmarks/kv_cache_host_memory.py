"""KV cache in node memory compared with none, for repeated questions about documents and for conversations.

`documents` uses the workers of long-context-kv-cache, Qwen3-32B on the eight H200 of a p5en, with the
workload of the blueprint: 4 requests per second, prompts of 10,000 tokens, of which a document is 97 %,
answers of 300 tokens, and 8,000 requests. The GPUs together hold 200 documents if each is stored once. The
180 GiB of node memory per worker hold 470 more. `conversation` is the first five minutes of Mooncake's trace
at three times its rate, as in kv_aware_routing, on the same workers.

Values are with node memory, and baselines are without. Both use the KV-aware router, which is informed about
the content of node memory. Blocks in node memory are copied at the simulator's 32 GB/s. All figures are
simulated. NVMe and S3 are left out, because the simulator does not support them, and no figure is a
throughput. The goal is a median end-to-end latency and a median time to first token that are a tenth lower,
in every case, also where the documents are more than node memory holds.

The first question about a document is always computed, and requests in flight also need space. The router
weighs cached blocks against the load of a worker. So a document is stored on several workers, and fewer
documents fit. Therefore the workers find half of the prompt tokens with 200 documents and a third with 400.
Without node memory, they find a third and a sixth. With 800 documents, they find as much as the GPUs alone
find with 400. For conversations they find 16 %, the maximum for so short a part of the trace, compared with
11 % without. At three times the trace's rate, these workers are overloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.harness.figure import Figure
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.replay.scaled_trace import shipped_trace
from inference_blueprints.measure.simulation.offline_replay import (
    RecordedRequest,
    SimulatedReplay,
    SyntheticLoad,
    replay_recorded,
    replay_synthetic,
)
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers, simulated_workers
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.traffic import own_means

_BLUEPRINT = "long-context-kv-cache"
_GOAL = 0.9
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
    """Return the blueprint's workers as input for the simulated engine."""
    blueprint = load_blueprint(_BLUEPRINT).blueprint
    [deployment] = build_plan(blueprint).models[0].deployments
    return simulated_workers(resolve(blueprint, 0, 0), deployment.workers)


def _documents(workers: _Workers, documents: int) -> list[Figure]:
    workload = own_means(load_blueprint(_BLUEPRINT).blueprint.spec.models[0])
    load = SyntheticLoad(workload.input_tokens, workload.output_tokens, _DOCUMENT_RATIO, documents)
    return _compared(
        f"{documents} documents",
        lambda each: replay_synthetic(each, load, workload.peak_requests_per_second, _REQUESTS),
        workers,
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
    )


def _compared(name: str, replayed: Callable[[_Workers], SimulatedReplay], workers: _Workers) -> list[Figure]:
    """Replay with and without node memory, and return latencies and the cached share of the prompts."""
    without = [replace(each, settings=replace(each.settings, host_kv_blocks=0)) for each in workers]
    kept, dropped = replayed(workers), replayed(without)

    def figure(what: str, value: float, baseline: float, unit: str, goal: float | None = None) -> Figure:
        return Figure(
            f"kv_cache_host_memory {name}, {what}", value, unit, baseline=baseline, goal=goal, simulated=True
        )

    first, first_dropped = kept.time_to_first_token, dropped.time_to_first_token
    whole, whole_dropped = kept.end_to_end, dropped.end_to_end
    return [
        figure("end to end p50", whole.p50, whole_dropped.p50, "ms", _GOAL),
        figure("end to end p90", whole.p90, whole_dropped.p90, "ms"),
        figure("first token p50", first.p50, first_dropped.p50, "ms", _GOAL),
        figure("first token p90", first.p90, first_dropped.p90, "ms"),
        figure("found of the prompts", 100 * kept.cached_ratio, 100 * dropped.cached_ratio, "%"),
    ]
