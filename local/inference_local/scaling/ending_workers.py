"""Scale-downs of live workers while clients stream from them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from inference_local.scaling.counted_load import CountedLoad
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.worker_process import WorkerProcess

# Limits of one wait. They bound a hang, not a speed.
_LONGEST_SECONDS = 240.0
_PERIOD_SECONDS = 0.05
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
                await asyncio.sleep(_PERIOD_SECONDS)
        return time.monotonic() - begun
