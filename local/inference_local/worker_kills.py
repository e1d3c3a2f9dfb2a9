"""Kills workers while they serve requests, and counts the outcomes of the streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp

from inference_blueprints.measure.completions.completion_client import CompletionClient, RequestOutcome
from inference_blueprints.measure.completions.image_client import ImageClient
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.types import Role
from inference_blueprints.spec.types import ImageRequests
from inference_contracts.errors import UserError
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.running_workers import WorkerProcess

# Outcomes of the streams whose worker was killed.


@dataclass(frozen=True, slots=True)
class WorkerLoss:
    """The outcome of killing one worker process while it served requests."""

    deployment: str
    """Release of the deployment."""
    role: Role
    workers: int
    """Number of workers of that role."""
    killed: int = 0
    """Number of killed workers. 0 if the role has one worker, because no other could continue its streams."""
    streams: int = 0
    """Streams in flight in the deployment, on any worker."""
    moved: int = 0
    """How often the frontends moved a stream to another worker."""
    lost: int = 0
    """Streams that did not return every requested token."""

    @property
    def completed(self) -> int:
        """Streams that returned every requested token."""
        return self.streams - self.lost


# Streams that continued on another worker. `…_migration_total` also counts streams that could not move.
_MIGRATIONS = "dynamo_frontend_model_migration_duration_seconds_count{"
#: Kinds of streams: with and without a first token.
UNDER_WAY = "ongoing_request"
NOT_BEGUN = "new_request"


async def moved_streams(session: aiohttp.ClientSession, frontends: Sequence[str], kind: str) -> int:
    """Return how often Dynamo's frontends have moved streams of a kind to another worker.

    frontends: Their URLs, without ``/v1``.
    Raises UserError if a frontend does not answer.
    """
    pages = await asyncio.gather(*(_metrics(session, frontend) for frontend in frontends))
    wanted = (f'migration_type="{kind}"', 'outcome="success"')
    lines = [line for page in pages for line in page.splitlines() if line.startswith(_MIGRATIONS)]
    return sum(round(float(line.split()[-1])) for line in lines if all(word in line for word in wanted))


async def _metrics(session: aiohttp.ClientSession, frontend: str) -> str:
    try:
        async with session.get(f"{frontend}/metrics", raise_for_status=True) as response:
            return await response.text()
    except aiohttp.ClientError as error:
        raise UserError(f"{frontend}/metrics does not answer: {error}") from error


_LONGEST_PROMPT = 3000


@dataclass(frozen=True, slots=True)
class _Moment:
    """When the workers of a role are killed."""

    streams_per_worker: int
    max_streams: int
    """`streams_per_worker`, `max_streams`: Number of streams that are sent."""
    begun_share: float
    """Share of the streams that have their first token when the worker is killed."""
    migration_type: str
    """The label in the frontend's metrics for the streams of such a worker."""


#: A worker that generates tokens is killed when all streams have begun. A prefill worker is killed when one
#: stream has begun and other prompts are queued.
_WRITING = _Moment(2, 32, 1.0, UNDER_WAY)
_PREFILLING = _Moment(4, 48, 0.0, NOT_BEGUN)


def kill_workers(serving: LocalServing, on_progress: Callable[[str], None]) -> tuple[WorkerLoss, ...]:
    """Kill one worker process per role of each deployment, while streams are in flight.

    Prefill workers are killed first. The others follow once the frontends have removed those from their
    lists: a stream moves once (`--migration-limit`), and its prompt must not go to a dead worker then.
    `LocalServing.replace_killed` replaces the killed processes.

    serving: The deployments, with all workers running.
    on_progress: Called with a description of the current action.
    Returns: One per role and deployment. A role with a single worker is skipped.
    Raises UserError if a frontend does not answer. Raises ProcessDied if another process ends. Raises
        NotReady if a frontend still lists the killed workers after a long time.
    """
    prefilling = [each for each in serving.first_workers() if each.role == "prefill"]
    writing = [each for each in serving.first_workers() if each.role != "prefill"]
    losses: list[WorkerLoss] = []
    for workers, moment in ((prefilling, _PREFILLING), (writing, _WRITING)):
        if workers:
            if any(loss.killed for loss in losses):
                serving.await_removal(on_progress)
            on_progress(", ".join(each.name for each in workers))
            losses += asyncio.run(_kill_together(serving, workers, moment))
    return tuple(losses)


async def _kill_together(
    serving: LocalServing, workers: Sequence[WorkerProcess], moment: _Moment
) -> list[WorkerLoss]:
    """Kill a worker of each deployment at the same time, so that more deployments take no more time."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return await asyncio.gather(*(_kill_one(serving, each, moment, session) for each in workers))


async def _kill_one(
    serving: LocalServing, victim: WorkerProcess, moment: _Moment, session: aiohttp.ClientSession
) -> WorkerLoss:
    everyone = victim.workers_of_role
    loss = WorkerLoss(victim.deployment.plan.release, victim.role, everyone)
    if victim.workers == everyone:
        return loss
    frontends = serving.frontend_urls(victim.deployment)
    moves = victim.deployment.frontend.moves_streams
    moved_before = await moved_streams(session, frontends, moment.migration_type) if moves else 0
    streams = _Streams(
        session,
        frontends,
        victim,
        min(everyone * moment.streams_per_worker, moment.max_streams),
        engines=serving.engines,
        images=serving.images_of(victim.deployment.model.name),
    )
    await streams.have_begun(moment.begun_share)
    under_way = streams.under_way
    serving.kill(victim)
    outcomes = await streams.ended(under_way)
    return WorkerLoss(
        loss.deployment,
        loss.role,
        everyone,
        killed=victim.workers,
        streams=len(outcomes),
        moved=(await moved_streams(session, frontends, moment.migration_type) if moves else 0) - moved_before,
        lost=sum(not streams.is_complete(outcome) for outcome in outcomes),
    )


class _Streams:
    """Streams sent to the frontends of a deployment in turn."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        frontends: Sequence[str],
        victim: WorkerProcess,
        count: int,
        *,
        engines: EngineKind,
        images: ImageRequests | None,
    ) -> None:
        context = victim.deployment.context_length
        self._images = images
        self._answer = min(engines.killed_answer_tokens, context // 2)
        self._prompt = min(_LONGEST_PROMPT, context // 4)
        self._begun = [asyncio.Event() for _ in range(count)]
        self._answer_seconds = engines.answer_seconds
        self._tasks = [
            asyncio.create_task(self._send(session, frontends[number % len(frontends)], victim, number))
            for number in range(count)
        ]

    @property
    def under_way(self) -> list[asyncio.Task[RequestOutcome]]:
        """Streams that have not ended."""
        return [task for task in self._tasks if not task.done()]

    async def have_begun(self, share: float) -> None:
        """Wait until a share of the streams, at least one, have their first token or have ended."""
        needed = max(1, round(share * len(self._tasks)))
        waiting = [asyncio.create_task(event.wait()) for event in self._begun]
        for begun in asyncio.as_completed(waiting):
            await begun
            needed -= 1
            if needed == 0:
                break
        for task in waiting:
            task.cancel()

    async def ended(self, tasks: Sequence[asyncio.Task[RequestOutcome]]) -> list[RequestOutcome]:
        """Wait for all streams, and return the outcomes of some."""
        await asyncio.gather(*self._tasks)
        return [task.result() for task in tasks]

    def is_complete(self, outcome: RequestOutcome) -> bool:
        """Return whether a stream returned every token, or a request its images."""
        counted = outcome.usage.completion_tokens if outcome.usage else 0
        return outcome.failure is None and (self._images is not None or counted == self._answer)

    async def _send(
        self, session: aiohttp.ClientSession, frontend: str, victim: WorkerProcess, number: int
    ) -> RequestOutcome:
        model, seconds, clock = victim.deployment.model.name, self._answer_seconds, time.perf_counter
        client = (
            ImageClient(session, frontend, model, timeout_seconds=seconds, clock=clock, images=self._images)
            if self._images
            else CompletionClient(session, frontend, model, timeout_seconds=seconds, clock=clock)
        )
        prompt = random_text(self._prompt, seed=time.time_ns() + number)
        try:
            return await client.complete(
                prompt, self._answer, time.perf_counter(), on_first_token=self._begun[number].set
            )
        finally:
            self._begun[number].set()
