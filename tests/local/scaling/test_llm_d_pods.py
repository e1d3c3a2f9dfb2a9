"""Pods of llm-d's workers go while clients stream; stand-ins for its router and for Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from inference_local.scaling.counted_load import CountedLoad, StreamCount, StreamLengths
from tests.local.scaling.llm_d_pods import LlmDPods, llm_d_pods

pytestmark = pytest.mark.faults
_CLIENTS = 12
#: Longer than a pod waits before SIGTERM, at 20 ms per token.
_ANSWERS = (300, 500)


def streamed_while(
    directory: Path,
    disturb: Callable[[LlmDPods], Awaitable[None]],
    *,
    answers: tuple[int, int] = _ANSWERS,
    shutdown_seconds: int | None = None,
) -> StreamCount:
    """Count every token of streams while something happens to the pods."""

    async def run() -> StreamCount:
        async with llm_d_pods(directory, shutdown_seconds=shutdown_seconds) as pods:
            load = CountedLoad(
                "qwen3-32b",
                [pods.url],
                _CLIENTS,
                StreamLengths((10, 20), answers),
                timeout_seconds=240.0,
                seed=1,
            )
            async with load:
                while load.count.begun < _CLIENTS:
                    await asyncio.sleep(0.02)
                    assert not load.count.faults
                await disturb(pods)
            return load.count

    return asyncio.run(run())


def test_a_decode_pod_that_goes_is_left_out_and_ends_after_its_streams(tmp_path: Path) -> None:
    async def scale_down(pods: LlmDPods) -> None:
        await pods.decode.scale(1)
        (ended,) = pods.decode.ended
        assert ended.running > 0, "no stream outlasted the wait before SIGTERM"
        assert ended.exit_code == 0, "the process ended before its streams"

    count = streamed_while(tmp_path, scale_down)
    assert count.faults == []
    assert count.streams > _CLIENTS


def test_pods_of_both_roles_come_and_go(tmp_path: Path) -> None:
    async def come_and_go(pods: LlmDPods) -> None:
        for wanted in (3, 1, 2):
            await asyncio.gather(pods.prefill.scale(wanted), pods.decode.scale(wanted))
        assert [each.exit_code for each in (*pods.prefill.ended, *pods.decode.ended)] == [0] * 4

    assert streamed_while(tmp_path, come_and_go, answers=(20, 300)).faults == []


def test_a_pod_that_the_picker_still_lists_refuses_requests(tmp_path: Path) -> None:
    """Why a pod waits before SIGTERM, and proof that the clients would see it."""

    async def end_at_once(pods: LlmDPods) -> None:
        await pods.decode.end(pods.decode.pods[0], left_out=False)

    faults = streamed_while(tmp_path, end_at_once, answers=(20, 300)).faults
    assert faults
    assert all("500" in each or "503" in each for each in faults), faults


def test_streams_that_outlast_the_time_of_their_pod_are_cut(tmp_path: Path) -> None:
    """Llm-d moves no streams."""

    async def scale_down(pods: LlmDPods) -> None:
        await pods.decode.scale(1)
        (ended,) = pods.decode.ended
        assert ended.exit_code == 1

    assert streamed_while(tmp_path, scale_down, answers=(600, 700), shutdown_seconds=1).faults
