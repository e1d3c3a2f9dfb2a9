"""Sends requests at their due times, independent of earlier requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from inference_blueprints.measure.completions.completion_client import (
    UNREACHABLE,
    Clock,
    CompletionClient,
    RequestOutcome,
)
from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import ReplayError, ScaledRequest
from inference_contracts.records import dataclass

NOT_SENT = "not sent: too many requests in flight"
#: The replay stops after this number of consecutive requests could not reach the endpoint.
UNREACHABLE_IN_A_ROW = 5


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """Progress of a replay."""

    done: int
    """Completed requests."""
    total: int
    """All requests of the replay."""
    in_flight: int
    """Requests whose answer has not ended."""


ProgressCallback = Callable[[ReplayProgress], None]


@dataclass(frozen=True, slots=True)
class Pacing:
    """The time source of the replay. Tests replace it."""

    clock: Clock = time.perf_counter
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for a number of seconds."""


class OpenLoop:
    """Sends requests by their arrival times and collects the outcomes.

    client: Sends one request. It uses the same clock.
    writer: Writes the prompt of a request when it is due.
    in_flight_limit: Maximum number of requests in flight. A request above it is not sent and counts as
        failed.
    on_progress: Called when a request is sent or ends.
    """

    def __init__(
        self,
        client: CompletionClient,
        writer: PromptWriter,
        *,
        in_flight_limit: int,
        pacing: Pacing,
        on_progress: ProgressCallback | None,
    ) -> None:
        self._client = client
        self._writer = writer
        self._in_flight_limit = in_flight_limit
        self._pacing = pacing
        self._on_progress = on_progress
        self._outcomes: list[RequestOutcome] = []
        self._total = 0
        self._in_flight = 0
        self._unreachable_in_a_row = 0

    async def send(self, requests: Sequence[ScaledRequest]) -> list[RequestOutcome]:
        """Send every request and wait for the last answer.

        requests: Requests in the order of arrival.
        Returns: In the order of arrival. Times are relative to the start of this call.
        Raises ReplayError if the endpoint stops answering.
        """
        self._total = len(requests)
        start = self._pacing.clock()
        try:
            async with asyncio.TaskGroup() as group:
                for request in requests:
                    due = start + request.arrival_seconds
                    await self._wait_until(due)
                    if self._in_flight < self._in_flight_limit:
                        self._in_flight += 1
                        group.create_task(self._send_one(request, due))
                    else:
                        self._end(_not_sent(due, self._pacing.clock()))
        except ExceptionGroup as failed:  # the first error cancelled the others
            raise failed.exceptions[0] from failed
        return [_counted_from(start, outcome) for outcome in sorted(self._outcomes, key=_due)]

    async def _wait_until(self, due: float) -> None:
        """Sleep until a time on the clock. Let other tasks run at least once."""
        await self._pacing.sleep(max(0.0, due - self._pacing.clock()))

    async def _send_one(self, request: ScaledRequest, due: float) -> None:
        """Send one request and record its outcome."""
        self._report_progress()
        outcome = await self._client.complete(self._writer.prompt(request), request.output_tokens, due)
        self._in_flight -= 1
        self._end(outcome)
        self._watch(outcome)

    def _end(self, outcome: RequestOutcome) -> None:
        """Record an outcome."""
        self._outcomes.append(outcome)
        self._report_progress()

    def _watch(self, outcome: RequestOutcome) -> None:
        """Stop when too many consecutive requests cannot reach the endpoint."""
        self._unreachable_in_a_row = self._unreachable_in_a_row + 1 if outcome.failure in UNREACHABLE else 0
        if self._unreachable_in_a_row == UNREACHABLE_IN_A_ROW:
            raise ReplayError(
                f"the endpoint stopped answering after {len(self._outcomes)} of {self._total} requests: the "
                f"last {UNREACHABLE_IN_A_ROW} got no answer ({outcome.failure}: {outcome.failure_detail}). "
                "Look at its log. If it runs on this machine, and other programs keep the processors busy, "
                "end them and start again."
            )

    def _report_progress(self) -> None:
        """Call the progress callback, if there is one."""
        if self._on_progress:
            self._on_progress(ReplayProgress(len(self._outcomes), self._total, self._in_flight))


def _not_sent(due: float, now: float) -> RequestOutcome:
    """Return the outcome of a request above the limit in flight."""
    return RequestOutcome(due, now, None, None, now, None, NOT_SENT)


def _due(outcome: RequestOutcome) -> float:
    """Return the due time of a request."""
    return outcome.due_seconds


def _counted_from(start: float, outcome: RequestOutcome) -> RequestOutcome:
    """Return an outcome with times relative to the start of the replay."""
    first, last = outcome.first_token_seconds, outcome.last_token_seconds
    return replace(
        outcome,
        due_seconds=outcome.due_seconds - start,
        sent_seconds=outcome.sent_seconds - start,
        first_token_seconds=None if first is None else first - start,
        last_token_seconds=None if last is None else last - start,
        ended_seconds=outcome.ended_seconds - start,
    )
