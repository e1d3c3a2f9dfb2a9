"""One line from its first request to its row."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from batch.contracts.shard import ShardLine
from batch.rendering import RenderingError
from batch.worker.concurrency_limit import ConcurrencyLimit, Permit
from batch.worker.drain import Drain
from batch.worker.endpoint import Answer, Endpoint, Failure, Fault
from batch.worker.images import ImageError
from batch.worker.metrics import Metrics
from batch.worker.requests import InvalidLineError, Request, Requests
from batch.worker.retry_budget import RetryBudget
from batch.worker.rows import ErrorCode, RowIdentifier, error_row, response_row

_FIRST_DELAY_SECONDS: Final = 1.0
_DELAY_GROWTH: Final = 3.0
_LONGEST_DELAY_SECONDS: Final = 60.0
#: What a broken answer counts against its line while the endpoint answers no other line either.
_BLAME_IN_AN_OUTAGE: Final = 0.25

_CODES: Final[dict[type[Exception], ErrorCode]] = {
    InvalidLineError: "invalid_line",
    RenderingError: "template_error",
    ImageError: "image_error",
}
_EXPIRED: Final = "This request could not be executed before the completion window expired."


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """What all lines of a shard have in common.

    Parameters
    ----------
    identifier
        Of its rows.
    requests
        Makes its requests.
    path
        The endpoint's path.
    deadline
        By the event loop's clock; a line without an answer by then is expired.
    order
        The shard's place among those of the process: the lowest goes first.
    drain
        Ends lines that wait to be sent again.
    attempt
        Attempt at the job.
    """

    identifier: RowIdentifier
    requests: Requests
    path: str
    deadline: float
    order: int
    drain: Drain
    attempt: int = 1

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return asyncio.get_running_loop().time() >= self.deadline


@dataclass(frozen=True, slots=True)
class Result:
    """A line's row.

    Parameters
    ----------
    row
        Without an end of line.
    attempts
        Requests that were sent for it.
    """

    row: bytes
    attempts: int = 0


def expired(line: ShardLine, terms: ShardTerms, attempts: int = 0) -> Result:
    """Return the result of a line that the deadline overtook.

    Parameters
    ----------
    line, terms
        The line and its shard.
    attempts
        Requests that were sent for it.
    """
    row = error_row(terms.identifier, line.ordinal, line.custom_id, "batch_expired", _EXPIRED)
    return Result(row, attempts)


@dataclass(slots=True)
class LineRunner:
    """Runs lines of all shards against one endpoint.

    Parameters
    ----------
    endpoint, limit, budget, metrics
        Shared by the process.
    attempts
        Failures of its own after which a line is given up.
    request_seconds
        Longest time for one request.
    """

    endpoint: Endpoint
    limit: ConcurrencyLimit
    budget: RetryBudget
    metrics: Metrics
    attempts: int
    request_seconds: float
    _answered_at: float = field(default=float("-inf"), init=False)

    async def run(self, line: ShardLine, terms: ShardTerms, permit: Permit) -> Result:
        """Ask until there is a row.

        Parameters
        ----------
        line, terms
            The line and its shard.
        permit
            For the first request; it is ended here.
        """
        try:
            request = await terms.requests.make(line)
        except (InvalidLineError, RenderingError, ImageError) as error:
            self.limit.ended()
            code = _CODES[type(error)]
            return Result(error_row(terms.identifier, line.ordinal, line.custom_id, code, str(error)))
        except BaseException:
            self.limit.ended()
            raise
        try:
            return await self._ask(line, terms, request, permit)
        finally:
            terms.requests.let_go(request)

    async def _ask(self, line: ShardLine, terms: ShardTerms, request: Request, permit: Permit) -> Result:
        """Send the request until it is answered, given up or expired."""
        now, attempts, blame = asyncio.get_running_loop().time, 0, 0.0
        while True:
            begin = now()
            seconds = min(self.request_seconds, terms.deadline - begin)
            if seconds <= 0:
                self.limit.ended()
                return expired(line, terms, attempts)
            attempts += 1
            outcome = await self._send(terms, request, permit, seconds)
            if isinstance(outcome, Answer):
                self._answered_at = now()
                self.budget.succeeded(again=attempts > 1)
                return _answered(line, terms, outcome, attempts)
            self.metrics.failures[outcome.fault.value] += 1
            blame += self._blame(outcome, begin)
            if blame >= self.attempts:
                return _given_up(line, terms, outcome, attempts)
            again = await self._wait(terms, outcome, attempts)
            if again is None:
                return expired(line, terms, attempts)
            permit = again

    async def _send(
        self, terms: ShardTerms, request: Request, permit: Permit, seconds: float
    ) -> Answer | Failure:
        """Send the request once and let the limit know of what came of it."""
        self.metrics.requests += 1
        try:
            outcome = await self.endpoint.ask(terms.path, request, seconds=seconds)
        except BaseException:
            self.limit.ended()
            raise
        if isinstance(outcome, Answer):
            self.limit.succeeded(permit, outcome.usage)
        elif outcome.fault is Fault.BROKEN:
            self.limit.ended()
        else:
            self.limit.refused(permit, outcome.retry_after_seconds)
        return outcome

    def _blame(self, failure: Failure, begin: float) -> float:
        """Return what a failure counts against its line: little, unless others are answered meanwhile."""
        if failure.fault is Fault.REFUSED:
            return 0.0
        if self._answered_at >= begin:
            return 1.0
        return _BLAME_IN_AN_OUTAGE if failure.fault is Fault.BROKEN else 0.0

    async def _wait(self, terms: ShardTerms, failure: Failure, attempts: int) -> Permit | None:
        """Wait for the right to send again; None if the deadline comes first."""
        delay = min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * _DELAY_GROWTH ** (attempts - 1))
        try:
            with terms.drain.waits():
                async with asyncio.timeout_at(terms.deadline):
                    # Who was refused waits for the limit, as all others do.
                    if failure.fault is not Fault.REFUSED:
                        await asyncio.sleep(random.uniform(delay / 2, delay))  # noqa: S311 - no secret
                    await self.budget.take()
                    return await self.limit.acquire(terms.order)
        except TimeoutError:
            return None


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
