"""Streams from a running platform while something happens to its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from inference_local.moved_streams import UNDER_WAY, moved_streams
from inference_local.scaling.counted_load import CountedLoad, StreamCount, StreamLengths
from inference_local.scaling.ending_workers import ScaleDowns
from inference_local.serving.local_serving import LocalServing

_PERIOD_SECONDS = 0.02
Disturbance = Callable[[ScaleDowns, CountedLoad], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Streamed:
    """What clients counted."""

    count: StreamCount
    """Streams, tokens and what was wrong."""
    moved: int
    """How often the frontends moved a stream to another worker."""


def stream_while(
    serving: LocalServing,
    disturb: Disturbance,
    lengths: StreamLengths,
    *,
    clients: int,
    timeout_seconds: float,
    seed: int = 0,
) -> Streamed:
    """Stream from every frontend of the first deployment while something happens to its workers.

    disturb: Called once the streams of all clients have begun. What is under way when it returns ends by
        itself.
    lengths: Lengths of the requests.
    clients: Number of streams at the same time.
    timeout_seconds: Longest time of one stream.
    seed: Chooses lengths, frontends and words.
    """

    async def run() -> Streamed:
        deployment = serving.first_workers()[0].deployment
        urls = serving.frontend_urls(deployment)
        load = CountedLoad(
            deployment.model.name, urls, clients, lengths, timeout_seconds=timeout_seconds, seed=seed
        )
        async with aiohttp.ClientSession() as session:
            before = await moved_streams(session, urls, UNDER_WAY)
            async with load:
                while load.count.begun + load.count.streams < clients:
                    await asyncio.sleep(_PERIOD_SECONDS)
                await disturb(ScaleDowns(serving, deployment, load), load)
            return Streamed(load.count, await moved_streams(session, urls, UNDER_WAY) - before)

    return asyncio.run(run())
