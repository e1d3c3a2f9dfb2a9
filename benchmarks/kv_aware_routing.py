"""KV-aware routing compared with round robin: end-to-end latency and time to first token.

Qwen3-32B runs on eight workers with two H200 each. Prompts have 4,000 tokens, of which the requests of a user
share 90 %, and answers have 200 tokens. `live` uses Dynamo's own frontends on this machine: both routings run
at the same time and get requests in turns of twenty seconds. The other figures come from Dynamo's offline
replay. In it, round robin always gives the same result, and the KV-aware router, which breaks ties at random,
varies by a few percent. Values are milliseconds with KV-aware routing, and baselines are those with round
robin. All are simulated. The goal is an end-to-end latency that is a fifth lower, in every case. Round robin
is the only other routing: least loaded and prefix hashing are not compared.

The gain depends on how much round robin recomputes, and on the load that this causes. Caches of 2,048 blocks
(a sixth of the plan's caches on H200) hold the prefixes of less than a third of 120 users. So round robin
finds few prefixes, and KV-aware routing finds most of them once each worker has its own users. The plan's own
caches are similarly short of space with 640 users. At 8 requests per second the workers are so idle that
recomputing causes little delay, and the gain is a tenth. With 640 users and 16 requests per second it is a
seventh. The median time to first token improves if more than half of the prompts find their prefix, as with
120 users from 16 requests per second. Its tail consists of users that no worker has seen yet, with either
routing.

`conversation` is the first five minutes of Mooncake's conversation trace, without prompts longer than the
plan's context, at its own rate and at three times that rate. So short a part shares little: at most 16 % of
the prompt tokens are found. Most of the delay comes from long prompts of other requests. At the trace's own
rate, the tail improves by a tenth; at three times the rate, by three tenths. The median hardly improves.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal

from benchmarks.harness.figure import Figure
from benchmarks.harness.layouts import LayoutCase, aggregated, blueprint_of, simulated
from benchmarks.harness.live import Arm, ask_in_turns, served, with_kv_blocks
from inference_blueprints.measure.replay.scaled_trace import PrefixBlock, ScaledRequest, shipped_trace
from inference_blueprints.measure.simulation.offline_replay import (
    Latencies,
    RecordedRequest,
    SimulatedReplay,
    SyntheticLoad,
    replay_recorded,
    replay_synthetic,
)
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers
from inference_blueprints.measure.statistics import percentile
from inference_blueprints.serving.plan import build_plan

Router = Literal["kv_router", "round_robin"]

_GOAL = 0.8
_USERS, _MANY_USERS = 120, 640
_SMALL_CACHE_BLOCKS = 2048
_SECONDS = 120
_LIVE_RATE, _TURNS, _TURN_SECONDS = 16, 2, 20.0
_CASE = LayoutCase("Qwen/Qwen3-32B", "p5en.48xlarge", SyntheticLoad(4000, 200, 0.9, _USERS))
_WORKERS = aggregated(8, 2)
_PERCENTILES = (50, 90, 99)
_OF_FIRST_TOKENS = (50, 90)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Latencies of both routings, in milliseconds."""

    end_to_end: tuple[Latencies, Latencies]
    first_token: tuple[Latencies, Latencies]

    @classmethod
    def of(cls, replayed: Callable[[Router], SimulatedReplay]) -> _Compared:
        """Replay with both routings."""
        aware, in_turn = replayed("kv_router"), replayed("round_robin")
        return cls(
            (aware.end_to_end, in_turn.end_to_end), (aware.time_to_first_token, in_turn.time_to_first_token)
        )

    def figures(self, name: str) -> list[Figure]:
        """Return a figure per percentile. End-to-end figures have the goal."""
        return [
            Figure(
                f"kv_aware_routing {name}, {kind} p{percent}",
                getattr(aware, f"p{percent}"),
                "ms",
                baseline=getattr(in_turn, f"p{percent}"),
                goal=_GOAL if kind == "end to end" else None,
                simulated=True,
            )
            for kind, (aware, in_turn), percents in (
                ("end to end", self.end_to_end, _PERCENTILES),
                ("first token", self.first_token, _OF_FIRST_TOKENS),
            )
            for percent in percents
        ]


def measure() -> list[Figure]:
    """Take the measurement."""
    planned = simulated(_CASE, _WORKERS)
    small = tuple(
        replace(each, settings=replace(each.settings, kv_blocks=_SMALL_CACHE_BLOCKS)) for each in planned
    )
    figures = [
        *_offline(small, _USERS, 8),
        *_offline(small, _USERS, 16),
        *_offline(small, _USERS, 24),
        *_offline(planned, _MANY_USERS, 16),
        *_offline(planned, _MANY_USERS, 24),
        *_conversation(1),
        *_conversation(3),
    ]
    return [*figures, *_live()]


def _offline(workers: tuple[SimulatedWorkers, ...], users: int, rate: int) -> list[Figure]:
    load = replace(_CASE.load, prefix_groups=users)
    compared = _Compared.of(
        lambda router: replay_synthetic(workers, load, rate, rate * _SECONDS, router=router)
    )
    return compared.figures(f"{users} users, {rate} requests/s")


def _conversation(speed: int) -> list[Figure]:
    """Replay the conversation trace at a multiple of its rate."""
    trace = shipped_trace()
    number = len(trace.requests)
    mean = SyntheticLoad(
        sum(request.input_tokens for request in trace.requests) // number,
        sum(request.output_tokens for request in trace.requests) // number,
    )
    workers = simulated(replace(_CASE, load=mean), _WORKERS)
    room = workers[0].settings.max_model_len
    requests = [
        RecordedRequest(arrival / speed, each.input_tokens, each.output_tokens, each.block_ids)
        for arrival, each in zip(trace.arrivals_seconds(), trace.requests, strict=True)
        if each.input_tokens + each.output_tokens <= room
    ]
    compared = _Compared.of(
        lambda router: replay_recorded(workers, requests, trace.block_tokens, router=router)
    )
    return compared.figures(f"conversation, {speed} x its rate")


def _live() -> list[Figure]:
    """Send requests to both routings on this machine."""
    arms = {}
    for routing in ("kvAware", "roundRobin"):
        blueprint = blueprint_of(_CASE, _WORKERS, {}, routing)
        arms[routing] = Arm(blueprint, with_kv_blocks(build_plan(blueprint), _SMALL_CACHE_BLOCKS))
    with tempfile.TemporaryDirectory() as folder, served(arms, Path(folder)) as endpoints:
        outcomes = ask_in_turns(endpoints, _turns())
    end_to_end = [_latencies([each.end_to_end_ms for each in outcomes[routing]]) for routing in arms]
    first_token = [
        _latencies([each.time_to_first_token_ms for each in outcomes[routing]]) for routing in arms
    ]
    return _Compared((end_to_end[0], end_to_end[1]), (first_token[0], first_token[1])).figures(
        f"live, {_USERS} users, {_LIVE_RATE} requests/s"
    )


def _turns() -> list[list[ScaledRequest]]:
    """Return the requests of each turn: random users at random times, the same in every run."""
    chance, own = random.Random(0), count(_USERS)  # noqa: S311 - no secret is made
    shared = round(_CASE.load.input_tokens * _CASE.load.shared_prefix_ratio)
    turns = []
    for _ in range(_TURNS):
        requests, arrival = [], chance.expovariate(_LIVE_RATE)
        while arrival < _TURN_SECONDS:
            blocks = (
                PrefixBlock(chance.randrange(_USERS), shared),
                PrefixBlock(next(own), _CASE.load.input_tokens - shared),
            )
            requests.append(ScaledRequest(arrival, _CASE.load.input_tokens, _CASE.load.output_tokens, blocks))
            arrival += chance.expovariate(_LIVE_RATE)
        turns.append(requests)
    return turns


def _latencies(values: Sequence[float | None]) -> Latencies:
    known = [value for value in values if value is not None]
    return Latencies(*(percentile(known, percent) or 0.0 for percent in (50, 90, 95, 99, 100)))
