"""Arms of a comparison: the size of their caches, and who is asked what in which order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.harness.figure import BenchmarkError
from benchmarks.harness.live import ask_in_turns, with_kv_blocks
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.replay.scaled_trace import PrefixBlock, ScaledRequest
from inference_blueprints.serving.plan import build_plan
from inference_local.serving.local_endpoint import LocalEndpoint
from tests.runtime.measurement.fake_endpoint import FakeEndpoint, serving

REQUESTS = [ScaledRequest(0.0, 8, 4, (PrefixBlock(0, 3), PrefixBlock(number + 1, 5))) for number in range(2)]


@contextmanager
def two(*faults: list[str]) -> Iterator[list[FakeEndpoint]]:
    """Two endpoints on a loop of their own, for `ask_in_turns` has one of its own."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found: list[FakeEndpoint] = []

    async def run() -> None:
        async with serving(faults=faults[0]) as first, serving(faults=faults[1]) as second:
            found.extend((first, second))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    ready.wait()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def endpoints(arms: list[FakeEndpoint]) -> dict[str, LocalEndpoint]:
    return {
        name: LocalEndpoint("qwen", f"{arm.base_url}/v1", metrics_urls=(), profile=None, context_length=8192)
        for name, arm in zip(("kv", "round robin"), arms, strict=True)
    }


def texts(arm: FakeEndpoint) -> list[str]:
    return [body["messages"][0]["content"] for body in arm.bodies]


def test_every_arm_is_asked_the_same_in_each_turn() -> None:
    with two([], []) as arms:
        outcomes = ask_in_turns(endpoints(arms), [REQUESTS, REQUESTS])
        assert {name: len(found) for name, found in outcomes.items()} == {"kv": 4, "round robin": 4}
        assert sorted(texts(arms[0])) == sorted(texts(arms[1]))
        assert sorted(texts(arms[0])[:2]) == sorted(texts(arms[0])[2:]), "turns share their prefixes"
        assert len({text.split()[0] for text in texts(arms[0])}) == 1
        assert all(outcome.usage for found in outcomes.values() for outcome in found)


def test_a_request_that_fails_ends_the_comparison() -> None:
    """Percentiles of fewer requests than the other arm's would be compared."""
    with (
        two([], ["http 500"]) as arms,
        pytest.raises(BenchmarkError, match="1 requests failed, the first: HTTP 500"),
    ):
        ask_in_turns(endpoints(arms), [REQUESTS])


def test_caches_of_another_size_are_those_of_all_workers_and_nothing_else_changes() -> None:
    plan = build_plan(load_blueprint("p5en-disaggregated").blueprint)
    changed = with_kv_blocks(plan, 2048)
    processes = [
        process for model in changed.models for each in model.deployments for process in each.processes
    ]
    assert [process.engine.kv_blocks if process.engine else None for process in processes] == [
        None,
        2048,
        2048,
    ]
    before = [process for model in plan.models for each in model.deployments for process in each.processes]
    assert [process.arguments for process in processes] == [process.arguments for process in before]
