"""Runs one line, from its first request to its result row."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import InitVar, dataclass, field
from typing import Final

from batch.contracts.shard import ShardLine
from batch.worker.answer_images import ImageNotStoredError, ShardImages
from batch.worker.concurrency_limit import ConcurrencyLimit, Permit
from batch.worker.drain import Drain
from batch.worker.image_loader import ImageError, ImageNotReadError
from batch.worker.metrics import Metrics, log
from batch.worker.model_endpoint import (
    Answer,
    EndpointFault,
    Failure,
    InvalidLineError,
    ModelEndpoint,
    ModelRequest,
    Requests,
    Room,
)
from batch.worker.retry_budget import RetryBudget
from batch.worker.rows import ErrorCode, RowIdentifier, error_row, response_row
from batch.worker.suspects import (
    ALONE_AGAIN_SECONDS,
    LOSSES_ALONE,
    LOSSES_AMONG_OTHERS,
    MOMENT_SECONDS,
    SuspectLines,
    SuspectTurn,
)
from batch.worker.team_budget import AGAIN_SECONDS, TeamBudget

_FIRST_DELAY_SECONDS: Final = 1.0
_DELAY_GROWTH: Final = 3.0
_LONGEST_DELAY_SECONDS: Final = 60.0
#: Weight of a broken answer against its line while the endpoint answers no other line either.
_BLAME_IN_AN_OUTAGE: Final = 0.25
#: Attempts at reading the images of a line, after which the line fails. With the delays between them, S3 has
#: between one and two minutes. They count only if a policy denies an image, or other images were read since.
_IMAGE_ATTEMPTS: Final = 6

#: Faults that say nothing against the line.
_BLAMELESS: Final = frozenset(
    {EndpointFault.REFUSED, EndpointFault.LOST, EndpointFault.HELD, EndpointFault.BUDGET}
)

#: What a load balancer or the front door answers if it reaches no server of the model.
_NO_SERVER: Final = frozenset({502, 503})

_CODES: Final[dict[type[Exception], ErrorCode]] = {
    InvalidLineError: "invalid_line",
    ImageError: "image_error",
}
#: Part of an answer with an error that an error row shows.
_SHOWN_BYTES: Final = 1000
_EXPIRED: Final = "This request could not be executed before the completion window expired."


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """Settings common to all lines of a shard."""

    identifier: RowIdentifier
    requests: Requests
    path: str
    deadline: float
    """By the event loop's clock. A line without an answer by then expires."""
    order: int
    """The shard's index among those of the process. The lowest goes first."""
    drain: Drain
    """Cancels lines that wait for a retry."""
    team: str = ""
    """Team that the job belongs to."""
    attempt: int = 1
    """Number of the attempt at the job."""
    images: ShardImages | None = None
    """Writes the images of answers; None if answers have none."""
    budget: TeamBudget = field(default_factory=TeamBudget)
    """The team's budgets at the front door."""

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return asyncio.get_running_loop().time() >= self.deadline


@dataclass(frozen=True, slots=True)
class Result:
    """The result row of a line."""

    row: bytes
    """The row, without its line end."""
    attempts: int = 0
    """Number of requests sent for the line."""


def expired(line: ShardLine, terms: ShardTerms, attempts: int = 0) -> Result:
    """Return the result of a line that expired at the deadline.

    attempts: Number of requests sent for the line.
    """
    code: ErrorCode = "batch_expired"
    message = _EXPIRED
    if terms.budget.used_up:
        code, message = "insufficient_quota", f"{_EXPIRED} {terms.budget.used_up}"
    return Result(error_row(terms.identifier, line.ordinal, line.custom_id, code, message), attempts)


@dataclass(slots=True)
class LineRunner:
    """Runs the lines of all shards against one endpoint."""

    endpoint: ModelEndpoint
    limit: ConcurrencyLimit
    budget: RetryBudget
    metrics: Metrics
    """`endpoint`, `limit`, `budget`, `metrics`: Shared by the process."""
    attempts: int
    """Failures caused by the line after which it is given up."""
    request_seconds: float
    """Longest time for one request."""
    turn: InitVar[SuspectTurn | None] = None
    """The turn at running a suspect, if the model has other workers."""
    asked_model: InitVar[str | None] = None
    """Name of the model in requests, if it is another one than in metrics."""
    suspects: SuspectLines = field(init=False)
    budgets: defaultdict[str, TeamBudget] = field(default_factory=lambda: defaultdict(TeamBudget), init=False)
    """Budgets of the teams at the front door, by team."""
    unreached_at: float = field(default=float("-inf"), init=False)
    """When a request last found no server of the model, by the event loop's clock."""

    def __post_init__(self, turn: SuspectTurn | None, asked_model: str | None) -> None:
        turn, model = turn or SuspectTurn(None, None, self.metrics.model), asked_model or self.metrics.model
        self.suspects = SuspectLines(self.endpoint, self.limit, model, turn)

    async def run(self, line: ShardLine, terms: ShardTerms, permit: Permit) -> Result:
        """Send requests for a line until there is a result row.

        permit: Permit of the first request. It is ended here.
        """
        made = await self._make(line, terms, permit)
        if isinstance(made, Result):
            return made
        request, permit = made
        try:
            return await self._ask(line, terms, request, permit)
        finally:
            terms.requests.let_go(request)

    async def _make(
        self, line: ShardLine, terms: ShardTerms, permit: Permit
    ) -> tuple[ModelRequest, Permit] | Result:
        """Make the request of a line and return it with a permit, or return why there is none.

        While S3 does not give an image, the permit is free for others.
        """
        now, blame = asyncio.get_running_loop().time, 0
        for attempts in itertools.count(1):
            begin = now()
            try:
                return await terms.requests.make(line), permit
            except (InvalidLineError, ImageError) as error:
                self.limit.ended()
                return _refused(line, terms, _CODES[type(error)], error)
            except ImageNotReadError as error:
                self.limit.ended()
                blame += error.is_denied or terms.requests.images_read_at >= begin
                if blame >= _IMAGE_ATTEMPTS:
                    return _refused(line, terms, "image_error", error)
            except BaseException:
                self.limit.ended()
                raise
            again = await self._wait(terms, _delay(attempts), is_retry=False)
            if again is None:
                break
            permit = again
        return expired(line, terms)

    async def _ask(self, line: ShardLine, terms: ShardTerms, request: ModelRequest, permit: Permit) -> Result:
        """Repeat the request until it is answered, given up or expired."""
        now, attempts, blame, losses = asyncio.get_running_loop().time, 0, 0.0, 0
        while True:
            begin = now()
            seconds = min(self.request_seconds, terms.deadline - begin)
            if seconds <= 0:
                self.limit.ended()
                return expired(line, terms, attempts)
            attempts += 1
            try:
                outcome = await self._answer(line, terms, request, permit, seconds)
            except ImageNotStoredError as error:
                return _refused(line, terms, "image_not_stored", error, attempts)
            if isinstance(outcome, Answer):
                self.budget.succeeded(again=attempts > 1)
                return _answered(line, terms, outcome, attempts)
            blame += self._blame(outcome, begin)
            losses += await self._is_lost(outcome, begin, terms)
            is_given_up = blame >= self.attempts
            is_lost = losses >= LOSSES_AMONG_OTHERS or outcome.is_suspected
            if is_lost or (is_given_up and outcome.is_server_error):
                return await self._run_alone(line, terms, request, outcome, attempts)
            if is_given_up:
                return _given_up(line, terms, outcome, attempts)
            is_retry = outcome.fault is not EndpointFault.BUDGET
            again = await self._wait(terms, _pause(outcome, attempts), is_retry=is_retry)
            if again is None:
                return expired(line, terms, attempts)
            permit = again

    async def _run_alone(
        self, line: ShardLine, terms: ShardTerms, request: ModelRequest, outcome: Failure, attempts: int
    ) -> Result:
        """Send a request while it is the only one, until it is answered, given up or expired."""
        losses, tries, last, was_alone = 0, 0, outcome, False
        log("line_suspected", reason=outcome.reason, attempts=attempts)
        while True:
            # What other processes have in flight must not meet it each time.
            spread = random.uniform(1 / 3, 1) * losses * ALONE_AGAIN_SECONDS  # noqa: S311 - no secret
            minimum = _delay(max(tries, 1)) if tries or outcome.fault is EndpointFault.HELD else 0.0
            # The budget of a team begins anew by itself, or is raised before.
            pause = 0.0 if outcome.fault is EndpointFault.BUDGET else outcome.retry_after_seconds or 0.0
            if not await self._sleep(terms, max(spread, pause, minimum)):
                break
            async with AsyncExitStack() as stack:
                try:
                    with terms.drain.waits():
                        async with asyncio.timeout_at(terms.deadline):
                            await terms.budget.opened()
                            await stack.enter_async_context(
                                self.suspects.alone(terms.path, losses, request.team)
                            )
                except TimeoutError:
                    break
                seconds = min(self.request_seconds, terms.deadline - asyncio.get_running_loop().time())
                attempts += 1
                try:
                    found = await self._answer(line, terms, request, None, seconds)
                except ImageNotStoredError as error:
                    return _refused(line, terms, "image_not_stored", error, attempts)
                if isinstance(found, Answer):
                    log("suspect_answered", attempts=attempts)
                    return _answered(line, terms, found, attempts)
                outcome = found
                if found.fault not in {EndpointFault.HELD, EndpointFault.BUDGET}:
                    tries += 1
                    self.suspects.lost()
                if found.fault in {EndpointFault.LOST, EndpointFault.BROKEN}:
                    losses, last = losses + 1, found
                    was_alone = was_alone or self.suspects.turn.lasts
            # A filter tries suspects one after the other, also those of other callers. It does not know of
            # other filters, so its word counts after one loss in the turn of this process.
            if losses >= LOSSES_ALONE or (was_alone and found.is_suspected):
                log("suspect_given_up", reason=last.reason, attempts=attempts)
                return _condemned(line, terms, last, attempts, losses)
        return expired(line, terms, attempts)

    async def _answer(
        self,
        line: ShardLine,
        terms: ShardTerms,
        request: ModelRequest,
        permit: Permit | None,
        seconds: float,
    ) -> Answer | Failure:
        """Send the request once, with a permit or alone, and write the images of its answer."""
        if terms.images is None:
            return await self._send(terms, request, permit, seconds)
        with terms.images.held() as memory:
            outcome = await self._send(terms, request, permit, seconds, memory.room)
            return await terms.images.store(line, outcome) if isinstance(outcome, Answer) else outcome

    async def _send(
        self,
        terms: ShardTerms,
        request: ModelRequest,
        permit: Permit | None,
        seconds: float,
        room: Room | None = None,
    ) -> Answer | Failure:
        """Send the request once, and report the outcome to the limit."""
        self.metrics.requests += 1
        begin = asyncio.get_running_loop().time()
        try:
            outcome = await self.endpoint.ask(terms.path, request, seconds=seconds, room=room)
        except BaseException:
            if permit is not None:
                self.limit.ended()
            raise
        if isinstance(outcome, Answer):
            self.suspects.answered()
            terms.budget.admitted(begin)
        else:
            self.metrics.failures[outcome.fault.value] += 1
            if outcome.fault is EndpointFault.BUDGET:
                self._refused(terms, outcome, begin)
            elif outcome.is_load and outcome.status in _NO_SERVER:
                self.unreached_at = asyncio.get_running_loop().time()
            if outcome.fault is EndpointFault.LOST:
                self.suspects.lost()
            if outcome.fault is EndpointFault.LOST or outcome.is_server_error:
                self.suspects.failed()
        if permit is not None:
            self._report(permit, outcome)
        return outcome

    def _refused(self, terms: ShardTerms, failure: Failure, begin: float) -> None:
        """Let the lines of the team wait. A shard whose team has no money left is given back.

        Other teams need the place meanwhile. Shortly before the deadline it stays, so that its lines end with
        the reason.
        """
        terms.budget.refused(failure, begin)
        left = terms.deadline - asyncio.get_running_loop().time()
        if terms.budget.is_used_up and left > AGAIN_SECONDS:
            terms.drain.begin()

    def _report(self, permit: Permit, outcome: Answer | Failure) -> None:
        """End a permit, and tell the limit whether the endpoint had room for the request."""
        if isinstance(outcome, Answer):
            self.limit.succeeded(permit, outcome.usage)
        elif outcome.is_load:
            self.limit.refused(permit, outcome.retry_after_seconds)
        else:
            self.limit.ended()

    def _blame(self, failure: Failure, begin: float) -> float:
        """Return the weight of a failure against its line.

        It is small unless other lines are answered meanwhile.
        """
        if failure.fault in _BLAMELESS:
            return 0.0
        if self.suspects.answered_at >= begin:
            return 1.0
        return _BLAME_IN_AN_OUTAGE if failure.fault is EndpointFault.BROKEN else 0.0

    async def _is_lost(self, failure: Failure, begin: float, terms: ShardTerms) -> bool:
        """Return whether whoever computed the answer is gone.

        An engine that ends may answer its requests with an error. Then others fail at the same moment, or no
        other request is answered.
        """
        if not failure.is_server_error:
            return failure.fault is EndpointFault.LOST
        moment = asyncio.get_running_loop().time()
        # Those of the same moment may be a little later.
        await self._sleep(terms, MOMENT_SECONDS)
        if self.suspects.answered_at >= begin and not self.suspects.failed_together(moment):
            return False
        self.suspects.lost()
        return True

    async def _sleep(self, terms: ShardTerms, seconds: float) -> bool:
        """Wait, and return whether that ended before the deadline."""
        try:
            with terms.drain.waits():
                async with asyncio.timeout_at(terms.deadline):
                    await asyncio.sleep(seconds)
        except TimeoutError:
            return False
        return True

    async def _wait(self, terms: ShardTerms, delay: float, *, is_retry: bool) -> Permit | None:
        """Wait for a permit; None if the deadline comes first.

        delay: Seconds to wait before, at most.
        is_retry: Whether the permit is for a request that was sent before.
        """
        try:
            with terms.drain.waits():
                async with asyncio.timeout_at(terms.deadline):
                    await asyncio.sleep(random.uniform(delay / 2, delay))  # noqa: S311 - no secret
                    await terms.budget.opened()
                    if is_retry:
                        # A line that was lost is sent again only to an endpoint that is there.
                        await self.suspects.until_answers(terms.path, terms.team)
                        await self.budget.take()
                    return await self.limit.acquire(terms.order)
        except TimeoutError:
            return None


def _pause(failure: Failure, attempts: int) -> float:
    """Return the seconds to wait after a failure, at most."""
    if failure.fault is EndpointFault.HELD:
        return 2 * (failure.retry_after_seconds or 0.0)
    # A refused request waits for the limit, as all others do, or for the budget of its team.
    is_refused = failure.fault in {EndpointFault.REFUSED, EndpointFault.BUDGET}
    return 0.0 if is_refused else _delay(attempts)


def _delay(attempts: int) -> float:
    """Return the seconds to wait after this many attempts, at most."""
    return min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * _DELAY_GROWTH ** (attempts - 1))


def _refused(
    line: ShardLine, terms: ShardTerms, code: ErrorCode, error: Exception, attempts: int = 0
) -> Result:
    return Result(error_row(terms.identifier, line.ordinal, line.custom_id, code, str(error)), attempts)


def _answered(line: ShardLine, terms: ShardTerms, answer: Answer, attempts: int) -> Result:
    row = response_row(
        terms.identifier,
        line.ordinal,
        line.custom_id,
        status=answer.status,
        request_id=answer.request_id,
        body=answer.body,
    )
    return Result(row, attempts)


def _given_up(line: ShardLine, terms: ShardTerms, failure: Failure, attempts: int) -> Result:
    if failure.answer is not None:
        return _answered(line, terms, failure.answer, attempts)
    message = f"Given up after {attempts} attempts, the last one: {failure.reason}"
    row = error_row(terms.identifier, line.ordinal, line.custom_id, "endpoint_error", message)
    return Result(row, attempts)


def _condemned(line: ShardLine, terms: ShardTerms, failure: Failure, attempts: int, losses: int) -> Result:
    times = "once" if losses == 1 else f"{losses} times"
    message = (
        f"Given up after {attempts} attempts: it was lost {times} while no other request of this batch "
        f"worker was in flight, so it may end the model's workers; the last time: {failure.reason}"
    )
    if failure.answer is not None:
        message += f"; the answer: {failure.answer.body[:_SHOWN_BYTES].decode(errors='replace')}"
    row = error_row(terms.identifier, line.ordinal, line.custom_id, "endpoint_error", message)
    return Result(row, attempts)
