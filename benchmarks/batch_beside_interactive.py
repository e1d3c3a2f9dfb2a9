"""A batch worker next to interactive requests: how much longer first tokens take, and the batch throughput.

Qwen3-32B runs on four workers with two H200 each, behind Dynamo's own frontends on this machine. Interactive
requests arrive all the time, six per second, with prompts of 3,000 tokens, half of them shared. The run has
four phases. First, there are only interactive requests. Then a batch worker, with the settings of a platform,
also sends prompts of 1,000 tokens for answers of 100 tokens. The router makes its requests wait until a
worker has no prompt to process, and the batch worker adapts the number in flight. Then there are only
interactive requests again. At last, a batch worker keeps 256 requests in flight that do not wait in the
router, as clients with a fixed number do.

`first token` is the time to first token of the interactive requests with the batch worker; the baseline is
without it. The goal is at most a tenth more at the 95th percentile. `requests of batch` is the number of
batch requests per second; the baseline is that of the fixed number, which delays the interactive requests.
`time per request of batch` is its inverse; the goal is at most 1.67 times that of the fixed number, which is
60 % of its requests. Engine times are simulated. All times include the delay of this machine under load.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.harness.batch.stage import Stage, check_lives, stage
from benchmarks.harness.figure import BenchmarkError, Figure
from benchmarks.harness.layouts import LayoutCase, aggregated, blueprint_of
from benchmarks.harness.live import Arm, served
from inference_blueprints.measure.completions.completion_client import CompletionClient, RequestOutcome
from inference_blueprints.measure.replay.open_loop import OpenLoop, Pacing
from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import PrefixBlock, ScaledRequest
from inference_blueprints.measure.simulation.offline_replay import SyntheticLoad
from inference_blueprints.measure.statistics import percentile
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts import batch_names
from inference_contracts.batch_limits import LATENCY_PERCENT_BEHIND
from inference_local.serving.local_endpoint import LocalEndpoint

USERS, RATE = 50, 6.0
CASE = LayoutCase("Qwen/Qwen3-32B", "p5en.48xlarge", SyntheticLoad(3000, 150, 0.5, USERS))
WORKERS = aggregated(4, 2)
_SHARDS, _LINES, PROMPT_TOKENS, ANSWER_TOKENS = 8, 1000, 1000, 100
_ALONE_SECONDS, _BESIDE_SECONDS, _FIXED_SECONDS = 20.0, 30.0, 12.0
#: A new worker first learns how long answers take, then how many requests may be in flight.
_LEARNS_SECONDS, _FILLS_SECONDS = 30.0, 5.0
_SECONDS = 240.0
_MS = 1000.0
_REQUEST_SECONDS = 120.0
FIXED_IN_FLIGHT = 256
GOAL, GOAL_BATCH = 1.1, 1 / 0.6
#: Without `latencyPercent`, others ask the model too.
_BATCH = {
    "queues": [
        {
            "name": "nightly",
            "model": "model",
            "rates": {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1},
        }
    ]
}
_TEAM = {"name": "ads", "principals": ["arn:aws:iam::123456789012:role/ads"], "monthlyBudgetUsd": 1}
_FIXED = {
    "BATCH_LATENCY_PERCENT": "0",
    "BATCH_IN_FLIGHT_START": str(FIXED_IN_FLIGHT),
    "BATCH_IN_FLIGHT_MOST": str(FIXED_IN_FLIGHT),
}


@dataclass(frozen=True, slots=True)
class _Window:
    """A phase, in seconds of the replay, and the batch rows in it."""

    begin: float
    end: float
    rows: int = 0

    def first_tokens(self, outcomes: Sequence[RequestOutcome]) -> list[float]:
        """Return the latencies in milliseconds of the requests that were sent in the phase."""
        sent = (outcome for outcome in outcomes if self.begin <= outcome.sent_seconds < self.end)
        return [time for outcome in sent if (time := outcome.time_to_first_token_ms) is not None]

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / (self.end - self.begin)


class _Timed:
    """Measures phases of the replay, which begins now."""

    def __init__(self, job: Stage, address: str) -> None:
        self._job = job
        self._address = address
        self._start = time.perf_counter()

    async def window(self, seconds: float) -> _Window:
        """Measure a phase without a worker."""
        rows, begin = await asyncio.to_thread(self._job.rows), self._now()
        await asyncio.sleep(seconds)
        end = self._now()
        return _Window(begin, end, await asyncio.to_thread(self._job.rows) - rows)

    async def with_worker(self, settings: dict[str, str], first: float, seconds: float) -> _Window:
        """Measure a phase with a worker, some time after its start, then stop the worker."""
        worker = self._job.start_worker(self._address, settings)
        try:
            await asyncio.sleep(first)
            window = await self.window(seconds)
            check_lives(worker)
        finally:
            worker.terminate()
            await asyncio.to_thread(worker.wait)
        return window

    def _now(self) -> float:
        return time.perf_counter() - self._start


def measure() -> list[Figure]:
    """Take the measurement."""
    document = blueprint_of(CASE, WORKERS, {}).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["spec"] |= {"batch": _BATCH, "teams": [_TEAM]}
    blueprint = Blueprint.model_validate(document)
    plan = build_plan(blueprint)
    beside = {
        batch_names.LATENCY_PERCENT: str(LATENCY_PERCENT_BEHIND),
        batch_names.REQUEST_HEADERS: json.dumps(dict(plan.models[0].batch_headers)),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        served({"live": Arm(blueprint, plan)}, Path(folder)) as endpoints,
        stage(Path(folder) / "batch", _SHARDS, _LINES, _body) as job,
    ):
        return asyncio.run(_measure(endpoints["live"], job, beside))


async def _measure(endpoint: LocalEndpoint, job: Stage, settings: dict[str, str]) -> list[Figure]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        client = CompletionClient(
            session,
            endpoint.base_url.removesuffix("/v1"),
            endpoint.model,
            timeout_seconds=_REQUEST_SECONDS,
            clock=time.perf_counter,
        )
        loop = OpenLoop(
            client, PromptWriter(random_text, 0), in_flight_limit=512, pacing=Pacing(), on_progress=None
        )
        async with asyncio.TaskGroup() as group:
            timed = _Timed(job, address=endpoint.base_url.removesuffix("/v1"))
            asking = group.create_task(loop.send(list(_interactive())))
            await asyncio.sleep(_FILLS_SECONDS)
            before = await timed.window(_ALONE_SECONDS)
            await asyncio.to_thread(job.submit)
            beside = await timed.with_worker(settings, _LEARNS_SECONDS, _BESIDE_SECONDS)
            await asyncio.sleep(_FILLS_SECONDS)
            after = await timed.window(_ALONE_SECONDS)
            fixed = await timed.with_worker(_FIXED, _FILLS_SECONDS, _FIXED_SECONDS)
            if asking.done():
                raise BenchmarkError("interactive requests ended before the measurement did")
    ended = asking.result()
    failed = [outcome for outcome in ended if outcome.failure]
    if failed:
        raise BenchmarkError(f"{len(failed)} requests failed, the first: {failed[0].failure}")
    alone = before.first_tokens(ended) + after.first_tokens(ended)
    return [
        *_first_tokens("first token", beside.first_tokens(ended), alone, {95: GOAL}),
        *_first_tokens(f"first token beside {FIXED_IN_FLIGHT}", fixed.first_tokens(ended), alone, {}),
        Figure(
            "batch_beside_interactive requests of batch",
            beside.rate,
            "requests/s",
            baseline=fixed.rate,
            simulated=True,
        ),
        Figure(
            "batch_beside_interactive time per request of batch",
            _MS / beside.rate,
            "ms",
            baseline=_MS / fixed.rate,
            goal=GOAL_BATCH,
            simulated=True,
        ),
    ]


def _first_tokens(
    name: str, values: Sequence[float], alone: Sequence[float], goals: dict[int, float]
) -> list[Figure]:
    return [
        Figure(
            f"batch_beside_interactive {name} p{percent}",
            percentile(values, percent) or 0.0,
            "ms",
            baseline=percentile(alone, percent),
            goal=goals.get(percent),
            simulated=True,
        )
        for percent in (50, 95)
    ]


def _interactive() -> Iterator[ScaledRequest]:
    """Yield requests of random users at random times, the same in every run."""
    chance, own = random.Random(0), count(USERS)  # noqa: S311 - no secret is made
    shared = round(CASE.load.input_tokens * CASE.load.shared_prefix_ratio)
    arrival = chance.expovariate(RATE)
    while arrival < _SECONDS:
        blocks = (
            PrefixBlock(chance.randrange(USERS), shared),
            PrefixBlock(next(own), CASE.load.input_tokens - shared),
        )
        yield ScaledRequest(arrival, CASE.load.input_tokens, CASE.load.output_tokens, blocks)
        arrival += chance.expovariate(RATE)


def _body(number: int) -> dict[str, Any]:
    """Return a request with a unique prompt."""
    return {
        "messages": [{"role": "user", "content": random_text(PROMPT_TOKENS, 1_000_000 + number)}],
        "max_tokens": ANSWER_TOKENS,
        "min_tokens": ANSWER_TOKENS,
        "ignore_eos": True,
    }
