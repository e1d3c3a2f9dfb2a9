"""Workers that go while clients stream: no stream is cut, and every token is counted by a client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.harness.scaled_platform import aggregated, disaggregated, serving
from inference_blueprints.spec.types import Blueprint
from inference_local.scaling.counted_load import CountedLoad
from inference_local.scaling.ending_workers import ScaleDown, ScaleDowns
from tests.local.scaling.streaming import stream_while

pytestmark = pytest.mark.faults

#: Enough for the longest stream of these tests on a busy machine.
ENOUGH_SECONDS = 20


@pytest.mark.parametrize(
    "blueprint", [pytest.param(aggregated(4), id="aggregated"), pytest.param(disaggregated(3, 3), id="roles")]
)
def test_random_scale_downs_cut_no_stream(blueprint: Blueprint, tmp_path: Path) -> None:
    """Workers go at random moments, sooner than some of their streams end."""
    done: list[ScaleDown] = []

    async def scale_down(workers: ScaleDowns, _: CountedLoad) -> None:
        await workers.at_random(6, seed=3, each=done.append)

    with serving(blueprint, tmp_path, finish_seconds=1) as running:
        streamed = stream_while(running, scale_down, answers=(200, 400))
        running.check()
    assert len(done) == 6
    assert streamed.count.faults == []
    assert streamed.count.streams > len(done)
    assert streamed.moved > 0, "no stream was longer than the time of its worker"
    assert all(each.streams > 0 for each in done)


def test_a_worker_with_enough_time_ends_its_streams_itself(tmp_path: Path) -> None:
    """A scale-down: frontends leave the worker out at once, and none of its streams has to move."""
    done: list[ScaleDown] = []

    async def scale_down(workers: ScaleDowns, _: CountedLoad) -> None:
        done.extend(await workers.end(workers.running("worker")[:1]))

    with serving(aggregated(2), tmp_path, finish_seconds=ENOUGH_SECONDS) as running:
        streamed = stream_while(running, scale_down)
    (worker,) = done
    assert (streamed.count.faults, streamed.moved) == ([], 0)
    assert worker.left_out_seconds < worker.ended_seconds
    assert worker.ended_seconds >= ENOUGH_SECONDS


def test_a_rollout_replaces_every_worker(tmp_path: Path) -> None:
    """One worker after the other goes and is replaced, as with `maxUnavailable: 1`."""

    async def roll_out(workers: ScaleDowns, _: CountedLoad) -> None:
        for role in ("prefill", "decode"):
            for worker in workers.running(role):
                await workers.end([worker])
                await workers.begin([worker])

    with serving(disaggregated(2, 2), tmp_path, finish_seconds=1) as running:
        streamed = stream_while(running, roll_out)
    assert streamed.count.faults == []


def test_a_node_that_goes_takes_its_workers_and_their_streams_move(tmp_path: Path) -> None:
    """A spot interruption: all workers of a node go at once, with less time than their streams need."""

    async def interrupt(workers: ScaleDowns, _: CountedLoad) -> None:
        await workers.end(workers.running("worker")[:3])

    with serving(aggregated(4), tmp_path, finish_seconds=1) as running:
        streamed = stream_while(running, interrupt, answers=(150, 200))
    assert streamed.count.faults == []
    assert streamed.moved > 0


def test_at_the_end_of_a_capacity_block_streams_end_before_their_workers(tmp_path: Path) -> None:
    """All workers go at once: streams under way end whole, and only later requests are refused."""

    async def end(workers: ScaleDowns, load: CountedLoad) -> None:
        load.stop()
        while load.count.begun < load.count.running:
            await asyncio.sleep(0.02)
        await workers.end(workers.running("worker"))

    with serving(aggregated(2), tmp_path, finish_seconds=ENOUGH_SECONDS) as running:
        streamed = stream_while(running, end)
        late = stream_while(running, lambda *_: asyncio.sleep(0), clients=1)
    assert (streamed.count.faults, streamed.moved) == ([], 0)
    assert late.count.faults, "a deployment without workers answered"
