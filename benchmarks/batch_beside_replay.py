"""The load of `batch_beside_interactive` in Dynamo's offline replay: its router, on a virtual clock.

Simulated, virtual time, Dynamo's router: one router, so nothing of this machine is in the figures. Batch
keeps a number of requests in flight. All figures are means of four replays with other arrival times, from 20
to 150 s after their start. The baseline of `first token` is the same replay without batch; that of `requests
of batch` is a fixed number of 256 in flight that does not wait in the router, and the goals are those of
`batch_beside_interactive`.

`as configured` has 48 requests in flight and the router's settings of a model that batch shares. `one worker
lent` is no setting of a platform: one worker of four serves only batch, with 128 requests in flight, the
other three serve interactive requests with 16 of batch beside them, and the requests of both are added.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.batch_beside_interactive import (
    ANSWER_TOKENS,
    CASE,
    FIXED_IN_FLIGHT,
    GOAL,
    GOAL_BATCH,
    PROMPT_TOKENS,
    RATE,
    USERS,
    WORKERS,
)
from benchmarks.harness.figure import Figure
from benchmarks.harness.layouts import simulated
from inference_blueprints.measure.simulation.offline_replay import engine_options, replay_api
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers
from inference_blueprints.measure.statistics import percentile
from inference_blueprints.serving.stacks.dynamo import BESIDE_BATCH, router_policy
from inference_contracts.request_headers import BATCH_CLASS

#: None of these was used to choose the router's settings.
_SEEDS = (11, 12, 13, 14)
_BEGIN, _END = 20.0, 150.0
_BLOCK_TOKENS = 20
_MS = 1000.0
_STARTS_WITHIN_SECONDS = 2.0
#: More than any arm completes.
_BATCH_REQUESTS = 6300
_IN_FLIGHT, _LENT_IN_FLIGHT, _BESIDE_LENT = 48, 128, 16
_CLASS = BATCH_CLASS
#: The replay's words for the frontend's arguments.
_SETTINGS = {
    "prefill_load_scale": BESIDE_BATCH["router-prefill-load-scale"],
    "overlap_score_credit_decay": BESIDE_BATCH["router-kv-overlap-score-credit-decay"],
}


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a replay shows."""

    first_token_p95: float
    batch_rate: float


def measure() -> list[Figure]:
    """Take the measurement."""
    workers = simulated(CASE, WORKERS)
    three, one = (tuple(replace(each, replicas=number) for each in workers) for number in (3, 1))
    alone = [_replay(workers, _interactive(seed)) for seed in _SEEDS]
    fixed = [
        _replay(workers, [*_interactive(seed), *_batch(seed, FIXED_IN_FLIGHT, waits=False)])
        for seed in _SEEDS
    ]
    configured = [_replay(workers, [*_interactive(seed), *_batch(seed, _IN_FLIGHT)]) for seed in _SEEDS]
    shared = [_replay(three, [*_interactive(seed), *_batch(seed, _BESIDE_LENT)]) for seed in _SEEDS]
    lent = [_replay(one, _batch(seed, _LENT_IN_FLIGHT, waits=False)) for seed in _SEEDS]
    rate = _rate(fixed)
    return [
        *_figures("as configured", configured, alone, _rate(configured), rate, goals=True),
        *_figures("one worker lent", shared, alone, _rate(shared) + _rate(lent), rate, goals=False),
    ]


def _figures(
    name: str,
    beside: Sequence[_Outcome],
    alone: Sequence[_Outcome],
    rate: float,
    fixed: float,
    *,
    goals: bool,
) -> list[Figure]:
    label = "batch_beside_replay"
    return [
        Figure(
            f"{label} {name}, first token p95",
            fmean(each.first_token_p95 for each in beside),
            "ms",
            baseline=fmean(each.first_token_p95 for each in alone),
            goal=GOAL if goals else None,
            simulated=True,
        ),
        Figure(f"{label} {name}, requests of batch", rate, "requests/s", baseline=fixed, simulated=True),
        Figure(
            f"{label} {name}, time per request of batch",
            _MS / rate,
            "ms",
            baseline=_MS / fixed,
            goal=GOAL_BATCH if goals else None,
            simulated=True,
        ),
    ]


def _rate(outcomes: Sequence[_Outcome]) -> float:
    return fmean(each.batch_rate for each in outcomes)


def _replay(workers: Sequence[SimulatedWorkers], rows: Iterable[dict[str, Any]]) -> _Outcome:
    replay, core = replay_api(), import_module("dynamo._core")
    with tempfile.TemporaryDirectory() as name:
        folder, policy = Path(name), router_policy()
        (folder / policy.name).write_text(policy.text, encoding="utf-8")
        trace = folder / "trace.jsonl"
        trace.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        report = replay.run_trace_replay(
            str(trace),
            trace_block_size=_BLOCK_TOKENS,
            router_mode="kv_router",
            router_config=core.KvRouterConfig(router_policy_config=str(folder / policy.name), **_SETTINGS),
            capture_per_request=True,
            max_sim_time_ms=_END * _MS,
            **engine_options(workers, folder),
        )
    first, ended = [], 0
    for request in report.per_request:
        if request["input_length"] == PROMPT_TOKENS:
            ended += _BEGIN * _MS <= (request["terminal_time_ms"] or 0.0) < _END * _MS
        elif request["ttft_ms"] is not None and request["arrival_time_ms"] >= _BEGIN * _MS:
            first.append(request["ttft_ms"])
    return _Outcome(percentile(first, 95) or 0.0, ended / (_END - _BEGIN))


def _interactive(seed: int) -> Iterator[dict[str, Any]]:
    """Yield requests of random users at random times."""
    chance, own = random.Random(seed), count(USERS)  # noqa: S311 - no secret is made
    shared = round(CASE.load.input_tokens * CASE.load.shared_prefix_ratio)
    arrival = chance.expovariate(RATE)
    while arrival < _END:
        yield {
            "timestamp": arrival * _MS,
            "input_length": CASE.load.input_tokens,
            "output_length": CASE.load.output_tokens,
            "hash_ids": [
                *_blocks(chance.randrange(USERS), shared),
                *_blocks(next(own), CASE.load.input_tokens - shared),
            ],
        }
        arrival += chance.expovariate(RATE)


def _batch(seed: int, in_flight: int, *, waits: bool = True) -> Iterator[dict[str, Any]]:
    """Yield as many sessions as are in flight: each sends its next request when the last one ends."""
    chance, own = random.Random(-seed), count(1_000_000)  # noqa: S311 - no secret is made
    for session in range(in_flight):
        start = chance.random() * _STARTS_WITHIN_SECONDS
        for turn in range(_BATCH_REQUESTS // in_flight):
            yield {
                "session_id": f"{session}",
                "input_length": PROMPT_TOKENS,
                "output_length": ANSWER_TOKENS,
                "hash_ids": _blocks(next(own), PROMPT_TOKENS),
                **({"policy_class": _CLASS} if waits else {}),
                **({"delay": 0.0} if turn else {"timestamp": start * _MS}),
            }


def _blocks(text: int, tokens: int) -> list[int]:
    """Return the blocks of a text. No two texts have one in common."""
    return [text * 1000 + block for block in range(tokens // _BLOCK_TOKENS)]
