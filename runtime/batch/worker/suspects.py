"""Runs requests alone that may end the workers of a model.

A worker that dies takes all its requests with it, and what killed it kills the next one. So a line is
suspected that was lost twice. It is sent again while no other request of this process is in flight, no other
process runs a suspect (`suspect_turn`), and the endpoint is known to answer: then only the line itself can be
the reason that it is lost once more, and nothing of this process is lost with it. A line that was only beside
another one is answered.

The filter of an entry point sees its callers and tries one suspect at a time. So its word after one loss
alone is enough (`contracts.request_filter`). Without it, another caller may be the reason of a loss.

Drains, interrupted Spot instances and lost nodes do not count: their requests are finished, moved to another
worker or time out, and no line meets three of them by chance while it is alone.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import orjson
from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.progress_items import turn_item
from batch.worker.bucket_client import in_thread, is_condition_refused
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.metrics import log
from batch.worker.model_endpoint import Answer, EndpointFault, ModelEndpoint, ModelRequest
from inference_contracts.batch_body_fields import IMAGES_PATH

# The turn at running a suspect alone: one process of all workers of a model has it at a time.
#
# The filters in front of several entry points do not know of each other. Without turns a line that was only
# tried beside what ends workers is lost with it, each by another filter, and then the word of its filter and
# a loss alone speak against it.
#
# The turn is an item of the table of progress, which is written whole under a condition (Amazon DynamoDB API
# Reference, "PutItem"), as progress itself is: so a worker needs no permission but that of its progress. It
# ends by itself: a process that has ended or hangs keeps it for a minute, and a long answer keeps the others
# waiting no longer. What is lost after that was perhaps not alone.

#: Time for which a process has the turn unless it takes it again, in seconds.
TURN_SECONDS: Final = 60.0
#: Time after a loss until the next process has the turn, in seconds: the death is then known to all filters
#: (`request_filter.suspects.SETTLED_SECONDS`), and lost requests of the dead worker have ended.
AFTER_LOSS_SECONDS: Final = 15.0


@dataclass(slots=True)
class SuspectTurn:
    """The turn of one process."""

    client: Any
    """boto3's client of DynamoDB."""
    table: str | None
    """The table of progress. None if this process is the only one: it always has the turn."""
    model: str
    clock: Callable[[], float] = time.time
    """Time in seconds since 1970, which all processes share."""
    _holder: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)
    _ends: float = field(default=float("-inf"), init=False)

    async def take(self) -> bool:
        """Take the turn, or take it again, and return whether it is this process's.

        If AWS does not answer, the suspect runs without a turn (`lasts`): it then needs more losses.
        """
        self._ends = float("-inf")
        begin = asyncio.get_running_loop().time()
        try:
            await self._write(TURN_SECONDS)
        except (BotoCoreError, ClientError) as error:
            if is_condition_refused(error):
                return False
            log("turn_unknown", model=self.model, reason=str(error))
            return True
        self._ends = begin + TURN_SECONDS if self.table else float("inf")
        return True

    @property
    def lasts(self) -> bool:
        """Whether no other process runs a suspect alone."""
        return asyncio.get_running_loop().time() < self._ends

    async def end(self, *, lost: bool) -> None:
        """Let another process have the turn.

        lost: Whether the request was lost. Then it gets the turn a little later.
        """
        if not self.lasts:
            return
        self._ends = float("-inf")
        try:
            await self._write(AFTER_LOSS_SECONDS if lost else 0.0)
        except (BotoCoreError, ClientError) as error:
            # It ends by itself.
            log("turn_unknown", model=self.model, reason=str(error))

    async def _write(self, seconds: float) -> None:
        if self.table is None:
            return
        now = self.clock()
        item = turn_item(self.model, self._holder, until=now + seconds, now=now)
        await in_thread(self.client.put_item, TableName=self.table, **item)


#: Times that a line is lost among others before it is suspected.
LOSSES_AMONG_OTHERS: Final = 2
#: Times that it is lost alone before it is given up.
LOSSES_ALONE: Final = 3
#: Longest wait before a line runs alone again, by which it grows with each loss: suspects of other processes
#: are then unlikely to meet it again.
ALONE_AGAIN_SECONDS: Final = 30.0
#: Requests that fail within this time of each other have failed at the same moment: an engine that ends takes
#: all its requests with it.
MOMENT_SECONDS: Final = 0.5
#: Idempotency key of the small requests that ask whether the endpoint is there.
PROBE_KEY: Final = "probe"
_MAX_FAILURES: Final = 1000
_PROBE_SECONDS: Final = 60.0
_PROBE_AGAIN_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
#: Small requests by API path, whose answers show that the model is served: the field of text, and the rest.
_PROBES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "/v1/completions": ("prompt", {"max_tokens": 1}),
        "/v1/embeddings": ("input", {}),
        IMAGES_PATH: ("prompt", {"size": "256x256", "num_inference_steps": 1}),
    }
)


@dataclass(slots=True)
class SuspectLines:
    """The suspects of all shards of the process."""

    endpoint: ModelEndpoint
    limit: ConcurrencyLimit
    """`endpoint`, `limit`: Shared by the process."""
    model: str
    """Name under which the endpoint serves the model."""
    turn: SuspectTurn
    """The turn at running a suspect, of all workers of the model."""
    answered_at: float = field(default=float("-inf"), init=False)
    """When a request was last answered, and last lost, by the event loop's clock."""
    lost_at: float = field(default=float("-inf"), init=False)
    _failed_at: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_FAILURES), init=False)
    _waiting: int = field(default=0, init=False)
    _lost_alone: int = field(default=0, init=False)
    """Of those that wait, lines that were lost alone; and whether one runs."""
    _runs: bool = field(default=False, init=False)
    _next: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def answered(self) -> None:
        """Note that a request was answered."""
        self.answered_at = asyncio.get_running_loop().time()

    def lost(self) -> None:
        """Note that a request was lost."""
        self.lost_at = asyncio.get_running_loop().time()

    def failed(self) -> None:
        """Note that a request failed, by an error of the endpoint or with its connection."""
        self._failed_at.append(asyncio.get_running_loop().time())

    def failed_together(self, moment: float) -> bool:
        """Return whether several requests failed at a moment that has passed."""
        return sum(abs(each - moment) <= MOMENT_SECONDS for each in self._failed_at) > 1

    @asynccontextmanager
    async def alone(self, path: str, losses: int, team: str = "") -> AsyncIterator[None]:
        """Keep all other requests back for the duration of the ``with`` block.

        It begins when no request is in flight, no other process runs a suspect, and the endpoint answers.
        Suspects run one after the other, so those in flight end once for all of them.

        path: API path of the request.
        losses: Times that it was lost alone. One that was goes first, while the filter still speaks of it.
        team: Team that small requests are charged to at the front door.
        """
        self._waiting += 1
        self.limit.hold()
        try:
            async with self._one(is_first=losses > 0):
                await self.limit.idle()
                begin = asyncio.get_running_loop().time()
                try:
                    await self._until_turn(path, team)
                    yield
                finally:
                    await self.turn.end(lost=self.lost_at >= begin)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.limit.release()

    @asynccontextmanager
    async def _one(self, *, is_first: bool) -> AsyncIterator[None]:
        """Let one line run at a time."""
        async with self._next:
            self._lost_alone += is_first
            try:
                await self._next.wait_for(lambda: not self._runs and (is_first or not self._lost_alone))
                self._runs = True
            finally:
                self._lost_alone -= is_first
                self._next.notify_all()
        try:
            yield
        finally:
            self._runs = False
            async with self._next:
                self._next.notify_all()

    async def _until_turn(self, path: str, team: str) -> None:
        """Wait until it is the turn of this process and the endpoint answers."""
        for seconds in _backoff():
            # It is taken again before each small request, whose answer may come late.
            if await self.turn.take() and await self._answers(path, team):
                return
            await asyncio.sleep(random.uniform(1, 1 + seconds))  # noqa: S311 - no secret

    async def until_answers(self, path: str, team: str = "") -> None:
        """Wait until the endpoint has answered a request since the last one was lost.

        If no line asks it, a small request does.

        path: API path of the small request.
        team: Team that it is charged to at the front door.
        """
        if self.answered_at >= self.lost_at:
            return
        async with self._probing:
            for seconds in _backoff():
                if self.answered_at >= self.lost_at:
                    return
                if await self._answers(path, team):
                    return
                await asyncio.sleep(seconds)

    async def _answers(self, path: str, team: str) -> bool:
        """Ask a small request, and return whether it was answered.

        If a budget of the team refuses it, the endpoint is not to blame: the line itself then waits for the
        budget, and lines of other teams must not wait for this one.
        """
        outcome = await self.endpoint.ask(path, self._probe(path, team), seconds=_PROBE_SECONDS)
        if isinstance(outcome, Answer):
            self.answered()
            return True
        if outcome.fault is EndpointFault.BUDGET:
            return True
        log("endpoint_unready", reason=outcome.reason)
        return False

    def _probe(self, path: str, team: str) -> ModelRequest:
        # Each has a text of its own: the filter knows requests by their bodies, and would refuse the next one
        # because an earlier one failed.
        text = f"hi {uuid.uuid4().hex[:8]}"
        if path in _PROBES:
            name, rest = _PROBES[path]
            body = {name: text, **rest, "model": self.model}
        else:
            body = {"messages": [{"role": "user", "content": text}], "max_tokens": 1, "model": self.model}
        return ModelRequest(orjson.dumps(body), PROBE_KEY, team=team)


def _backoff() -> Iterator[float]:
    """Yield the waits between probes, for ever."""
    yield from _PROBE_AGAIN_SECONDS
    while True:
        yield _PROBE_AGAIN_SECONDS[-1]
