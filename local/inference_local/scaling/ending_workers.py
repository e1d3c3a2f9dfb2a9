"""Scale-downs of live workers while clients stream from them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import aiohttp

from inference_local.scaling.counted_load import CountedLoad, StreamCount, StreamLengths
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.running_workers import WorkerProcess
from inference_local.worker_kills import UNDER_WAY, moved_streams

# Limits of one wait. They bound a hang, not a speed.
_LONGEST_SECONDS = 240.0
_ENDING_WORKERS_PERIOD_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """One worker that was told to end while clients streamed."""

    role: str
    """Name of its process in the plan."""
    streams: int
    """Streams under way in the deployment at that moment, on any worker."""
    left_out_seconds: float
    """Time until no frontend listed it."""
    ended_seconds: float
    """Time until its process had ended."""


class ScaleDowns:
    """Ends workers of a deployment and starts them again.

    serving: The running platform.
    load: What clients send meanwhile.
    """

    def __init__(self, serving: LocalServing, deployment: LocalDeployment, load: CountedLoad) -> None:
        self._serving = serving
        self._workers = serving.workers
        self._deployment = deployment
        self._load = load

    def running(self, role: str) -> list[WorkerProcess]:
        """Return the workers of a role that serve.

        role: Name of its process in the plan.
        """
        everyone = self._workers.of(self._deployment)
        return [each for each in everyone if each.kind.name == role and self._workers.runs(each)]

    async def at_random(
        self, count: int, *, seed: int, each: Callable[[ScaleDown], None] = lambda _: None
    ) -> None:
        """End workers at random moments: one of a role up to all but one, of random roles at the same time.

        The streams under way at the end of one scale-down end before the next: a frontend moves a stream once
        (``--migration-limit 1``), so a stream that loses two workers ends with an error.

        count: Number of scale-downs.
        seed: Chooses the workers and the moments.
        each: Called after each scale-down.
        """
        chance = random.Random(seed)  # noqa: S311 - no secret is made
        while count > 0:
            await asyncio.sleep(chance.uniform(0.0, _LONGEST_PAUSE_SECONDS))
            victims: list[WorkerProcess] = []
            for role in self._deployment.workers:
                running = self.running(role.name)
                victims += chance.sample(running, chance.randint(0, len(running) - 1))
            victims = victims[:count]
            if victims:
                for done in await self.end(victims):
                    each(done)
                count -= len(victims)
                async with asyncio.timeout(_LONGEST_SECONDS):
                    await asyncio.gather(self.begin(victims), self._load.streams_end())

    async def end(self, victims: Sequence[WorkerProcess]) -> list[ScaleDown]:
        """End workers at the same time, and wait until they have ended.

        victims: Running workers of the deployment.
        Raises TimeoutError if frontends still list them, or their processes run, long after that.
        """
        streams, begun = self._load.count.running, time.monotonic()
        for victim in victims:
            self._workers.end(victim)
        staying = sum(self._workers.runs(worker) for worker in self._workers.of(self._deployment))
        left_out = await self._until(lambda: self._all_list(lambda count: count <= staying), begun)
        seconds = [await self._until(partial(self._has_ended, each), begun) for each in victims]
        return [
            ScaleDown(victim.kind.name, streams, left_out, ended)
            for victim, ended in zip(victims, seconds, strict=True)
        ]

    async def begin(self, workers: Sequence[WorkerProcess]) -> None:
        """Start workers that do not run, and wait until every frontend lists them.

        workers: Workers of the deployment.
        Raises TimeoutError if a frontend does not list them.
        """
        self._workers.begin_all(workers)
        running = sum(self._workers.runs(worker) for worker in self._workers.of(self._deployment))
        await self._until(lambda: self._all_list(lambda count: count >= running), time.monotonic())

    def _has_ended(self, worker: WorkerProcess) -> bool:
        return not self._workers.is_ending(worker)

    def _all_list(self, wanted: Callable[[int], bool]) -> bool:
        """Return whether every frontend answers, and lists a wanted number of workers."""
        listed = self._serving.registered(self._deployment)
        return all(each is not None and wanted(each) for each in listed)

    async def _until(self, condition: Callable[[], bool], begun: float) -> float:
        """Wait until a condition is true, and return the time since a moment in seconds."""
        async with asyncio.timeout(_LONGEST_SECONDS):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(_ENDING_WORKERS_PERIOD_SECONDS)
        return time.monotonic() - begun


_COUNTED_STREAMING_PERIOD_SECONDS = 0.02
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
                    await asyncio.sleep(_COUNTED_STREAMING_PERIOD_SECONDS)
                await disturb(ScaleDowns(serving, deployment, load), load)
            return Streamed(load.count, await moved_streams(session, urls, UNDER_WAY) - before)

    return asyncio.run(run())
