"""Clients that come and go, so that the number of workers of real engines follows them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

import aiohttp

from inference_blueprints.measure.completions.completion_client import (
    WRONG_COUNT,
    CompletionClient,
    RequestOutcome,
)
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_local.scaling.elastic_run import ElasticRun
from inference_local.scaling.operator_stand_in import ElasticRole
from inference_local.scaling.scaling_outcome import WorkerSample

#: Words of a prompt, and tokens of an answer.
_PROMPT, _ANSWER = 40, 120
_QUIET_SECONDS = 5.0
#: A platform that does not follow is not waited for any longer. The outcome says what happened until then.
_LONGEST_SECONDS = 180.0
_PERIOD_SECONDS = 0.2
#: A platform that refuses everything is not asked as fast as possible.
_PAUSE_SECONDS = 1.0


class _Phase(StrEnum):
    QUIET = "few"
    BUSY = "many"

    def clients(self, role: ElasticRole, rules: ScaledObject) -> int:
        """Return how many clients a deployment has."""
        at_once = role.workers.at_once
        if self is _Phase.BUSY:
            return rules.maximum * at_once
        return max(1, min(rules.maximum, rules.minimum * at_once // 2))


class ComingClients:
    """Clients of every elastic deployment, each with one stream after the other.

    First, few stream: at most one per worker of the largest number, and so few that they fill half of the
    smallest number of workers. Then as many clients arrive as the maximum number of workers can serve at
    once, and stay until that number is ready. Then they leave until the smallest number of workers is left.
    The few go on without a break, so workers go while they have streams.

    elastic: What lets the workers follow them.
    answer_seconds: Longest time of an answer.
    on_progress: Called with what happens now.
    """

    def __init__(
        self, elastic: ElasticRun, answer_seconds: float, on_progress: Callable[[str], None]
    ) -> None:
        self._elastic = elastic
        self._answer_seconds = answer_seconds
        self._on_progress = on_progress
        self._phase: _Phase | None = _Phase.QUIET
        self._outcomes: list[RequestOutcome] = []
        self._sent = 0

    @property
    def maximum(self) -> int:
        """How many clients stream at once, at most."""
        return sum(_Phase.BUSY.clients(role, rules) for role, rules in self._elastic.roles)

    def run(self) -> list[RequestOutcome]:
        """Return the outcome of every stream. One with a token too few or too many has failed."""
        asyncio.run(self._run())
        return self._outcomes

    async def _run(self) -> None:
        minimum = sum(rules.minimum for _, rules in self._elastic.roles)
        maximum = sum(rules.maximum for _, rules in self._elastic.roles)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            clients = [
                asyncio.create_task(self._client(session, role, rules, number))
                for role, rules in self._elastic.roles
                for number in range(_Phase.BUSY.clients(role, rules))
            ]
            await asyncio.sleep(_QUIET_SECONDS)
            self._phase = _Phase.BUSY
            await self._until(lambda sample: sample.ready >= maximum)
            await asyncio.sleep(_QUIET_SECONDS)
            self._phase = _Phase.QUIET
            await self._until(lambda sample: sample.ready <= minimum and sample.occupying <= minimum)
            self._phase = None
            await asyncio.gather(*clients)

    async def _client(
        self, session: aiohttp.ClientSession, role: ElasticRole, rules: ScaledObject, number: int
    ) -> None:
        urls = self._elastic.serving.frontend_urls(role.deployment)
        client = CompletionClient(
            session,
            urls[number % len(urls)],
            role.model,
            timeout_seconds=self._answer_seconds,
            clock=time.perf_counter,
        )
        while self._phase:
            if number >= self._phase.clients(role, rules):
                await asyncio.sleep(_PERIOD_SECONDS)
                continue
            self._sent += 1
            prompt = random_text(_PROMPT, seed=self._sent)
            outcome = await client.complete(prompt, _ANSWER, time.perf_counter())
            counted = outcome.usage.completion_tokens if outcome.usage else 0
            if outcome.failure is None and counted != _ANSWER:
                detail = f"{counted} of {_ANSWER} tokens arrived"
                outcome = replace(outcome, failure=WRONG_COUNT, failure_detail=detail)
            self._outcomes.append(outcome)
            if outcome.failure is not None:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _until(self, reached: Callable[[WorkerSample], bool]) -> None:
        deadline = time.monotonic() + _LONGEST_SECONDS
        while time.monotonic() < deadline:
            if self._elastic.samples:
                sample = self._elastic.samples[-1]
                workers = f"{sample.ready} of {sample.wanted} wanted workers are ready"
                self._on_progress(f"{self._phase} clients, {workers}")
                if reached(sample):
                    return
            await asyncio.sleep(_PERIOD_SECONDS)
