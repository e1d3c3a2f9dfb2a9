"""The load of a run's front door: what its callers send, one part after the other."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from inference_blueprints.measure.tokenizer import random_text
from inference_local.front_door.door_client import QUOTA, DoorAnswer, DoorQuestion
from inference_local.front_door.door_scenario import (
    ANSWER_TOKENS,
    PROMPT_WORDS,
    REQUESTS_IN_BUDGET,
    Asked,
    Shed,
)

#: Pairs of requests, one through the door and one directly, of which the first ones are not counted.
_PAIRS, _WARM_UP_PAIRS = 35, 5
_CONVERSATIONS, _TURNS, _TALKERS = 30, 3, 10
#: Streams that are cut, their tokens, and the least and the most chunks after which their callers hang up.
_CUT_STREAMS, _CUT_TOKENS, _CUT_AFTER, _CUTTERS = 24, 60, (2, 40), 6
#: Streams that fill a model: how many begin at first, and then again and again, at most; and their tokens.
_FIRST_FILLING, _MORE_FILLING, _MOST_FILLING, _FILL_TOKENS = 15, 2, 40, 4000
#: Requests of each kind while it is full.
_WHILE_FULL = 6
#: Longest time until each replica knows what the others have in progress, and requests meanwhile.
_KNOWN_SECONDS, _LOOKS = 1.5, 3
#: Clients that spend a budget, until each is refused once: many first. One that fails so often gives up.
_SPENDERS, _MOST_FAILURES = (12, 6, 3, 2), 2
#: One of so many requests is a stream.
_STREAM_EACH = 4
#: Requests after which the budget refuses for certain, or is out of order.
_MOST_SPENDING = 4 * REQUESTS_IN_BUDGET
#: Longest time from the end of an answer until its reservation is settled: Envoy writes its log five times a
#: second.
_SETTLED_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 15.0

Sleep = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")


class LoadClient(Protocol):
    """What sends requests, as `DoorClient` does."""

    async def ask(self, question: DoorQuestion) -> DoorAnswer:
        """Ask for a whole answer."""

    async def stream(
        self,
        question: DoorQuestion,
        *,
        hangs_up: Callable[[int], bool] | None = None,
        begun: Callable[[], None] | None = None,
    ) -> DoorAnswer:
        """Ask for a stream, and hang up when a function of the number of chunks says so."""


@dataclass(slots=True)
class LoadResult:
    """Everything that was sent through the door."""

    answers: list[DoorAnswer] = field(default_factory=list)
    """All answers."""
    cut: list[DoorAnswer] = field(default_factory=list)
    """Those of streams that were to be cut."""
    cut_tokens: int | None = None
    """Tokens that the frontends counted meanwhile. None if they count nothing."""
    conversations: Mapping[str, Sequence[DoorAnswer]] = field(default_factory=dict)
    """Those of each conversation."""
    urgent: list[DoorAnswer] = field(default_factory=list)
    low: list[DoorAnswer] = field(default_factory=list)
    """`urgent`, `low`: Those of requests while a model was full."""
    low_retried: int = 0
    """Refused ones that were answered after the time that the refusal named."""
    spending: list[DoorAnswer] = field(default_factory=list)
    """Those of the team whose budget is reached."""
    direct: list[DoorAnswer] = field(default_factory=list)
    """Those of a model's own endpoint, without the door."""
    added_ms: float | None = None
    """Median of the time that the door adds, in milliseconds."""


class DoorLoad:
    """Sends the parts of a load. Each adds its answers to `result`.

    seed: Chooses the words of prompts, and when streams are cut.
    sleep: Waits for a number of seconds. Tests replace it.
    """

    def __init__(self, seed: int, sleep: Sleep = asyncio.sleep) -> None:
        self.result = LoadResult()
        self._random = random.Random(seed)  # noqa: S311 - no secret is made
        self._sleep = sleep

    def _question(self, asked: Asked, tokens: int = ANSWER_TOKENS) -> DoorQuestion:
        return DoorQuestion(asked.model, random_text(PROMPT_WORDS, self._random.getrandbits(40)), tokens)

    def _keep(self, answer: DoorAnswer) -> DoorAnswer:
        self.result.answers.append(answer)
        return answer

    async def compare(self, door: LoadClient, direct: LoadClient, asked: Asked, served: str) -> None:
        """Send requests through the door and directly in turns, and compare their times.

        door, direct: A client of the door, and one of the model's own endpoint.
        asked: Who asks for what.
        served: Name of the model at its own endpoint.
        """
        differences = []
        for number in range(_WARM_UP_PAIRS + _PAIRS):
            question = self._question(asked, tokens=1)
            # Another prompt: the second one would hit the cache of the first.
            other = DoorQuestion(served, self._question(asked).prompt, 1)
            if number % 2:
                through = self._keep(await door.ask(question))
                straight = await direct.ask(other)
            else:
                straight = await direct.ask(other)
                through = self._keep(await door.ask(question))
            self.result.direct.append(straight)
            if number >= _WARM_UP_PAIRS and through.kind == straight.kind == "whole":
                differences.append((through.seconds, straight.seconds))
        if differences:
            medians = [statistics.median(column) for column in zip(*differences, strict=True)]
            self.result.added_ms = (medians[0] - medians[1]) * 1000

    async def converse(self, client: LoadClient, asked: Asked) -> None:
        """Hold conversations of several requests each, several at a time."""

        async def talk(name: str) -> tuple[str, list[DoorAnswer]]:
            answers = []
            for _ in range(_TURNS):
                question = self._question(asked, tokens=4).in_session(name)
                answers.append(self._keep(await client.ask(question)))
            return name, answers

        names = [f"conversation-{self._random.getrandbits(40):x}" for _ in range(_CONVERSATIONS)]
        self.result.conversations = dict(await _at_most(_TALKERS, [partial(talk, name) for name in names]))

    async def cut_streams(self, client: LoadClient, asked: Asked) -> None:
        """Begin streams, and hang up in the middle of each."""

        async def cut() -> DoorAnswer:
            question, most = self._question(asked, _CUT_TOKENS), self._random.randint(*_CUT_AFTER)
            return self._keep(await client.stream(question, hangs_up=lambda chunks: chunks >= most))

        self.result.cut = await _at_most(_CUTTERS, [cut] * _CUT_STREAMS)

    async def shed(self, client: LoadClient, pair: Shed) -> None:
        """Fill a model with urgent streams until less urgent requests are refused, and send both kinds then.

        client: It repeats no request by itself.
        """
        result = self.result
        filling: list[asyncio.Task[DoorAnswer]] = []
        is_over = asyncio.Event()

        async def fill(group: asyncio.TaskGroup, streams: int) -> None:
            """Begin more streams, which last until all is over, and wait until each has begun."""
            for begun in [asyncio.Event() for _ in range(streams)]:
                question = self._question(pair.urgent, _FILL_TOKENS)
                stream = client.stream(question, hangs_up=lambda _: is_over.is_set(), begun=begun.set)
                filling.append(group.create_task(stream))
                await _first(begun.wait(), filling[-1])

        async def low() -> DoorAnswer:
            result.low.append(self._keep(await client.ask(self._question(pair.low, 1))))
            return result.low[-1]

        async def is_full() -> bool:
            """Return whether a replica refuses, once all know what the others have in progress."""
            for _ in range(_LOOKS):
                await self._sleep(_KNOWN_SECONDS / _LOOKS)
                if (await low()).kind == "refused":
                    return True
            return False

        async with asyncio.TaskGroup() as group:
            await fill(group, _FIRST_FILLING)
            while not await is_full() and len(filling) < _MOST_FILLING:
                await fill(group, _MORE_FILLING)
            for _ in range(_WHILE_FULL):
                await low()
                result.urgent.append(self._keep(await client.ask(self._question(pair.urgent, 1))))
            is_over.set()
        result.answers += [each.result() for each in filling]
        await self._ask_again(client, pair)

    async def _ask_again(self, client: LoadClient, pair: Shed) -> None:
        """Send what was refused again, after the time that the refusals name."""
        result = self.result
        refused = [each for each in result.low if each.kind == "refused"]
        waits = [each.retry_after for each in refused if each.retry_after is not None]
        if not refused or len(waits) < len(refused):
            return
        await self._sleep(min(max(waits), _LONGEST_WAIT_SECONDS))
        for _ in refused:
            again = self._keep(await client.ask(self._question(pair.low, 1)))
            result.low_retried += again.kind == "whole"

    async def spend(
        self, client: LoadClient, asked: Asked, meanwhile: Callable[[int], Awaitable[None]]
    ) -> None:
        """Spend a budget with many clients until it refuses, then its rest with fewer and fewer.

        meanwhile: Awaited beside them after each answer, with the number of answers so far.
        """
        sent = 0

        async def once() -> DoorAnswer:
            nonlocal sent
            sent += 1
            # A client repeats no stream that has begun, so some break with the replica that is killed.
            send = client.ask if sent % _STREAM_EACH else client.stream
            answer = self._keep(await send(self._question(asked)))
            self.result.spending.append(answer)
            await meanwhile(len(self.result.spending))
            return answer

        async def until_refused() -> None:
            failures = 0
            while failures < _MOST_FAILURES and len(self.result.spending) < _MOST_SPENDING:
                answer = await once()
                if answer.reason == QUOTA:
                    return
                failures += answer.kind in {"failed", "broken"}

        # What many reserve is released when they have ended, and fewer of them can spend it.
        for clients in _SPENDERS:
            await asyncio.gather(*(until_refused() for _ in range(clients)))
            await self._sleep(_SETTLED_SECONDS)


async def _at_most(number: int, calls: Sequence[Callable[[], Awaitable[_T]]]) -> list[_T]:
    """Make calls, at most a number of them at a time. Return what they return, in their order."""
    free = asyncio.Semaphore(number)

    async def one(call: Callable[[], Awaitable[_T]]) -> _T:
        async with free:
            return await call()

    return list(await asyncio.gather(*map(one, calls)))


async def _first(begun: Awaitable[object], stream: asyncio.Task[DoorAnswer]) -> None:
    """Wait until a stream has begun or ended."""
    waiting = asyncio.ensure_future(begun)
    await asyncio.wait([waiting, stream], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
