"""What the load sends, with clients that answer at once: no door, no time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from inference_local.front_door.door_client import AnswerKind, DoorAnswer, DoorQuestion
from inference_local.front_door.door_load import DoorLoad
from inference_local.front_door.door_scenario import Asked, Shed

CHAT, LATER = Asked("shop", "chat"), Asked("shop", "later")
Answers = Callable[[DoorQuestion], tuple[AnswerKind, str, float]]


@dataclass
class Scripted:
    """A client whose answers a function chooses: the kind, a reason, and how long it took."""

    answers: Answers = lambda _: ("whole", "", 0.1)
    asked: list[DoorQuestion] = field(default_factory=list)
    streams: int = 0
    chunks: list[int] = field(default_factory=list)

    async def ask(self, question: DoorQuestion) -> DoorAnswer:
        await asyncio.sleep(0)
        self.asked.append(question)
        kind, reason, seconds = self.answers(question)
        after = 2.0 if kind == "refused" else None
        return DoorAnswer(kind, "shop", question.model, 0.0, seconds, reason, "id", 10, 4, after)

    async def stream(
        self,
        question: DoorQuestion,
        *,
        hangs_up: Callable[[int], bool] | None = None,
        begun: Callable[[], None] | None = None,
    ) -> DoorAnswer:
        self.streams += 1
        if hangs_up is None:
            return await self.ask(question)
        chunks = 0
        while not chunks or not hangs_up(chunks):
            chunks += 1
            if begun and chunks == 1:
                begun()
            await asyncio.sleep(0)
        self.chunks.append(chunks)
        return DoorAnswer("cut", "shop", question.model, 0.0, 0.1, "", "id", 10, 4)


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def test_the_added_time_is_the_difference_of_the_medians_without_the_warm_up() -> None:
    """The first requests open connections: with them, the door looked three times as slow."""
    load, number = DoorLoad(1), 0

    def slow_at_first(_: DoorQuestion) -> tuple[AnswerKind, str, float]:
        nonlocal number
        number += 1
        return "whole", "", 9.0 if number <= 5 else 0.1015

    door, direct = Scripted(slow_at_first), Scripted()
    asyncio.run(load.compare(door, direct, CHAT, "served"))
    assert load.result.added_ms is not None
    assert round(load.result.added_ms, 6) == 1.5
    assert len(door.asked) == len(direct.asked) == len(load.result.answers) == 40
    assert {each.model for each in direct.asked} == {"served"}
    prompts = [each.prompt for each in (*door.asked, *direct.asked)]
    assert len(set(prompts)) == len(prompts)  # none finds its prompt in the cache


def test_requests_that_fail_say_nothing_of_the_time() -> None:
    load = DoorLoad(1)
    asyncio.run(load.compare(Scripted(lambda _: ("failed", "status 503", 0.1)), Scripted(), CHAT, "served"))
    assert load.result.added_ms is None


def test_conversations_keep_their_names() -> None:
    load, client = DoorLoad(1), Scripted()
    asyncio.run(load.converse(client, CHAT))
    names = [(each.headers or {})["X-Dynamo-Session-ID".lower()] for each in client.asked]
    assert len(names) == 90
    assert {names.count(name) for name in names} == {3}
    assert load.result.conversations.keys() == set(names)
    assert all(len(answers) == 3 for answers in load.result.conversations.values())


def test_streams_are_cut_at_different_chunks() -> None:
    load, client = DoorLoad(1), Scripted()
    asyncio.run(load.cut_streams(client, CHAT))
    assert len(load.result.cut) == 24 == len(load.result.answers)
    assert len(set(client.chunks)) > 5
    assert all(2 <= chunks <= 40 for chunks in client.chunks)


def shed_load(most: int, *, retry: AnswerKind = "whole") -> tuple[DoorLoad, list[float]]:
    """Shed at a model that refuses less urgent requests while it has so many streams."""
    slept = list[float]()
    client = Scripted()

    def answer(question: DoorQuestion) -> tuple[AnswerKind, str, float]:
        if question.model == "chat":
            return "whole", "", 0.1
        if 2.0 in slept:
            return retry, "", 0.1
        is_full = client.streams - len(client.chunks) >= most
        return ("refused", "no_room", 0.1) if is_full else ("whole", "", 0.1)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    client.answers = answer
    load = DoorLoad(1, sleep)
    asyncio.run(load.shed(client, Shed(CHAT, LATER)))
    return load, slept


def test_a_model_is_filled_until_the_less_urgent_are_refused() -> None:
    """Streams that end by themselves made room on a slow machine before the model was full."""
    load, slept = shed_load(most=16)
    result = load.result
    assert slept == [0.5, 0.5, 0.5, 0.5, 2.0]
    assert [each.kind for each in result.low].count("refused") == 7
    assert [each.kind for each in result.low].count("whole") == 3
    assert len(result.urgent) == 6 == [each.kind for each in result.urgent].count("whole")
    assert result.low_retried == 7
    assert len(result.answers) == 10 + 6 + 17 + 7


def test_a_model_that_is_never_full_ends_the_load() -> None:
    load, slept = shed_load(most=1000)
    assert {each.kind for each in load.result.low} == {"whole"}
    assert 2.0 not in slept
    assert len([each for each in load.result.answers if each.kind == "cut"]) == 41


def test_a_refusal_whose_time_was_not_true_is_not_counted_as_retried() -> None:
    load, _ = shed_load(most=14, retry="refused")
    assert load.result.low_retried == 0


def test_a_budget_is_spent_by_many_and_its_rest_by_fewer() -> None:
    load, left, seen = DoorLoad(1, no_sleep), 100, list[int]()

    def answer(_: DoorQuestion) -> tuple[AnswerKind, str, float]:
        nonlocal left
        left -= 1
        return ("whole", "", 0.1) if left >= 0 else ("refused", "insufficient_quota", 0.1)

    async def meanwhile(answers: int) -> None:
        seen.append(answers)

    client = Scripted(answer)
    asyncio.run(load.spend(client, CHAT, meanwhile))
    kinds = [each.kind for each in load.result.spending]
    assert kinds.count("whole") == 100
    assert kinds.count("refused") == 12 + 6 + 3 + 2
    assert client.streams == len(kinds) // 4
    assert sorted(seen) == list(range(1, 124))


def test_a_door_that_never_refuses_or_never_answers_ends_the_load() -> None:
    async def nothing(_: int) -> None:
        return None

    for kind, most in (("whole", 600 + 23), ("failed", 2 * 23)):
        load = DoorLoad(1, no_sleep)

        def answer(_: DoorQuestion, kind: AnswerKind = kind) -> tuple[AnswerKind, str, float]:  # type: ignore[assignment]
            return kind, "", 0.1

        asyncio.run(load.spend(Scripted(answer), CHAT, nothing))
        assert 0 < len(load.result.spending) <= most
