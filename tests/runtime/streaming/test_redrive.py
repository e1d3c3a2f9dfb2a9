"""Dead letters: which are asked again, which win against the store, and where the next call goes on."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from inference_contracts.dead_letters import (
    EVENT_REASONS,
    DeadLetter,
    EventPosition,
    StreamedAnswer,
    redriven_name,
)
from inference_contracts.streaming_job import StreamingJobConfiguration
from signals.record import SignalRecord
from streaming import redrive
from streaming.job_topics import Positions, TopicReader, TopicRecord
from streaming.redrive import Redrive, Redriven, RedriveOrder, redrive_topic, request_digest
from streaming.redrive_targets import AnswerHistory, ModelAnswer, RedriveError

JOB = StreamingJobConfiguration.from_json(Path(__file__).with_name("job.json").read_text("utf-8"))
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "clicks"}]}


class Store:
    """The signal store: the newest version wins."""

    def __init__(self, **versions: int) -> None:
        self.versions = dict(versions)
        self.records: list[SignalRecord] = []
        self.lock = threading.Lock()

    def newest_version(self, session: str) -> int | None:
        return self.versions.get(session)

    def write(self, record: SignalRecord) -> bool:
        with self.lock:
            if self.versions.get(record.key, -1) >= record.version:
                return False
            self.versions[record.key] = record.version
            self.records.append(record)
            return True


class History:
    """The history: the last line of a version stays."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], StreamedAnswer] = {}
        self.full = False

    def add(self, answer: StreamedAnswer) -> None:
        if self.full:
            raise RedriveError("the history takes no answer: AccessDenied")
        self.answers[answer.session, answer.version] = answer


class Topic:
    """A topic of dead letters in memory."""

    def __init__(self, *partitions: list[bytes]) -> None:
        self.partitions = partitions

    def oldest(self) -> Positions:
        return dict.fromkeys(range(len(self.partitions)), 0)

    def newest(self) -> Positions:
        return {number: len(records) for number, records in enumerate(self.partitions)}

    def read(self, start: Positions, end: Positions) -> Iterator[TopicRecord]:
        for number, records in enumerate(self.partitions):
            for offset in range(start[number], end[number]):
                yield TopicRecord(number, offset, records[offset])


class World:
    """A job with everything that a redrive needs."""

    def __init__(self, **versions: int) -> None:
        self.store = Store(**versions)
        self.history = History()
        self.now = 0.0
        self.asked: list[str] = []
        self.sent: list[tuple[bytes, bytes | None]] = []
        self.broken: set[str] = set()
        self.slept: list[float] = []

    def ask(self, request: Mapping[str, Any], session: str) -> ModelAnswer:
        assert request == REQUEST
        self.asked.append(session)
        if session in self.broken:
            raise RedriveError("the endpoint answers 503")
        return ModelAnswer(f"answer to {session}", prompt_tokens=5, cached_tokens=3, answer_tokens=2)

    def redrive(self, order: RedriveOrder) -> Redrive:
        return Redrive(
            JOB,
            order,
            ask=self.ask,
            store=self.store,
            history=self.history,
            now=lambda: self.now,
            send=lambda event, key: self.sent.append((event, key)),
            clock=lambda: 0.0,
            sleep=self.slept.append,
        )

    def run(self, topic: Topic, order: RedriveOrder, **event: Any) -> dict[str, Any]:
        return redrive_topic(cast("TopicReader", topic), self.redrive(order), event)


def letter(session: str, version: int, reason: str = "timeout", at: int = 1000) -> bytes:
    return (
        DeadLetter(
            job=JOB.name,
            reason=reason,
            message="no answer",
            at=at,
            attempts=2,
            session=session,
            version=version,
            request=REQUEST,
        )
        .to_json()
        .encode()
    )


def poison(content: bytes) -> bytes:
    source = EventPosition(topic=JOB.kafka.topic, partition=0, offset=3)
    found = DeadLetter(
        job=JOB.name, reason="poison", message="no JSON", at=1000, attempts=0, event=content, source=source
    )
    return found.to_json().encode()


APPLY = RedriveOrder(dry_run=False)


def test_a_dead_letter_becomes_the_signal_of_its_session() -> None:
    world = World()
    found = world.run(Topic([letter("s-1", 7)]), APPLY)
    assert found["counts"] == {"timeout": {"redriven": 1}}
    [record] = world.store.records
    assert (record.name, record.key, record.version) == (JOB.signal.name, "s-1", 7)
    assert record.value == "answer to s-1"
    assert record.expires - record.time == JOB.signal.ttl_seconds


def test_what_the_store_has_already_is_not_asked_again() -> None:
    world = World(newer=9, same=7)
    topic = Topic([letter("newer", 7), letter("same", 7), letter("older", 7)])
    world.store.versions["older"] = 6
    assert world.run(topic, APPLY)["counts"] == {"timeout": {"redriven": 1, "superseded": 2}}
    assert world.asked == ["older"]
    # So a second redrive asks nothing.
    assert world.run(topic, APPLY)["counts"] == {"timeout": {"superseded": 3}}
    assert world.asked == ["older"]


def test_a_newer_answer_that_comes_while_the_model_answers_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def ask(request: Mapping[str, Any], session: str) -> ModelAnswer:
        world.store.versions[session] = 8
        return ModelAnswer("late")

    monkeypatch.setattr(world, "ask", ask)
    found = world.run(Topic([letter("s-1", 7)]), APPLY)
    assert found["counts"] == {"timeout": {"superseded": 1}}
    assert world.store.records == []


def test_a_dry_run_asks_writes_and_sends_nothing() -> None:
    world = World()
    order = RedriveOrder(events=True)
    found = world.run(Topic([letter("s-1", 7), poison(b"{")]), order)
    assert found["counts"] == {"poison": {"redriven": 1}, "timeout": {"redriven": 1}}
    assert (world.asked, world.store.records, world.sent) == ([], [], [])


def test_events_are_sent_again_only_on_request_and_byte_for_byte() -> None:
    world, topic = World(), Topic([poison(b'{"shopper": "\xff"')])
    assert world.run(topic, APPLY)["counts"] == {"poison": {"left": 1}}
    assert world.sent == []
    world.run(topic, RedriveOrder(dry_run=False, events=True))
    assert world.sent == [(b'{"shopper": "\xff"', None)]


def test_an_event_with_a_session_is_sent_with_its_key() -> None:
    """Without it, the event reached any partition, so another shard's job, and the session fell apart."""
    source = EventPosition(topic=JOB.kafka.topic, partition=0, offset=3)
    late = DeadLetter(
        job=JOB.name,
        reason="late",
        message="late",
        at=1,
        attempts=0,
        session="s-1",
        event=b"{}",
        source=source,
    )
    world = World()
    world.run(Topic([late.to_json().encode()]), RedriveOrder(dry_run=False, events=True))
    assert world.sent == [(b"{}", b"s-1")]


def test_a_dead_letter_whose_request_did_not_fit_is_left() -> None:
    large = DeadLetter(
        job=JOB.name, reason="endpoint", message="large", at=1, attempts=2, session="s-1", version=7
    )
    world = World()
    found = world.run(Topic([large.to_json().encode()]), APPLY)
    assert found["counts"] == {"endpoint": {"left": 1}}
    assert world.asked == []


def test_reasons_and_age_choose_dead_letters() -> None:
    world = World()
    topic = Topic([letter("a", 1), letter("b", 1, "endpoint"), letter("c", 1, "endpoint", at=99)])
    order = RedriveOrder(reasons=frozenset({"endpoint"}), dry_run=False, since_milliseconds=100)
    found = world.run(topic, order)
    assert (found["counts"], found["seen"]) == ({"endpoint": {"redriven": 1}}, 3)
    assert world.asked == ["b"]


def test_what_fails_is_counted_and_the_rest_goes_on() -> None:
    world = World()
    world.broken = {"b"}
    topic = Topic([letter("a", 1), letter("b", 1), b"?", letter("c", 1)])
    found = world.run(topic, APPLY)
    assert found["counts"] == {"timeout": {"redriven": 2, "failed": 1}, "unknown": {"unreadable": 1}}
    assert sorted(found["failures"]) == [
        "partition 0, offset 2: it is not JSON: Expecting value: line 1 column 1 (char 0)",
        "timeout, session b: the endpoint answers 503",
    ]
    assert found["done"]


def test_requests_start_at_the_given_rate() -> None:
    world = World()
    world.run(Topic([letter(f"s-{n}", 1) for n in range(4)]), RedriveOrder(dry_run=False, per_second=4.0))
    assert sorted(world.slept) == [0.0, 0.25, 0.5, 0.75]


def test_a_call_ends_at_its_limit_and_the_next_goes_on_there() -> None:
    world = World()
    topic = Topic([letter("a", 1), letter("b", 1)], [letter("c", 1)])
    first = world.run(topic, APPLY, limit=2)
    assert (first["done"], first["seen"], first["start"]) == (False, 2, {"0": 2, "1": 0})
    topic.partitions[1].append(letter("d", 1))  # It came later: the next redrive takes it.
    second = world.run(topic, APPLY, start=first["start"], end=first["end"])
    assert (second["done"], second["seen"]) == (True, 1)
    assert world.asked == ["a", "b", "c"]


def test_a_call_ends_before_lambda_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive, "_CALL_SECONDS", -1.0)
    found = World().run(Topic([letter("a", 1)]), APPLY)
    assert (found["done"], found["seen"], found["start"]) == (False, 0, {"0": 0})


def test_many_dead_letters_are_each_done_once() -> None:
    world = World()
    topic = Topic(*([letter(f"s-{part}-{n}", 1) for n in range(200)] for part in range(3)))
    found = world.run(topic, RedriveOrder(dry_run=False, per_second=1000.0))
    assert found["counts"] == {"timeout": {"redriven": 600}}
    assert set(Counter(world.asked).values()) == {1}
    assert found["start"] == {"0": 200, "1": 200, "2": 200}


def test_counts_of_threads_add_up() -> None:
    result = Redriven()

    def count() -> None:
        for _ in range(2000):
            result.add("r", "redriven")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert result.counts["r"]["redriven"] == 8000


def test_every_example_of_the_contract_is_asked_again_or_left(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = json.loads(Path(__file__).with_name("dead_letters.json").read_text("utf-8"))["letters"]
    world = World()

    def ask(request: Mapping[str, Any], session: str) -> ModelAnswer:
        return ModelAnswer("answer")

    monkeypatch.setattr(world, "ask", ask)
    found = world.run(Topic([json.dumps(each).encode() for each in examples]), APPLY)
    assert found["failures"] == []
    for reason, outcomes in found["counts"].items():
        without = sum(each["reason"] == reason and each["request"] is None for each in examples)
        assert outcomes.get("left", 0) == without
        assert set(outcomes) <= {"left", *(() if reason in EVENT_REASONS else ("redriven", "superseded"))}


def test_what_is_redriven_is_in_the_history_so_that_no_version_is_in_neither() -> None:
    """The dead letters of a topic go after 14 days; the answers to them stay."""
    world = World(newer=9)
    world.run(Topic([letter("a", 7), letter("newer", 7), letter("b", 7_000)]), APPLY)
    assert set(world.history.answers) == {("a", 7), ("b", 7_000)}
    line = json.loads(world.history.answers["a", 7].to_json())
    assert line.pop("callMillis") >= 0
    assert line == {
        "job": JOB.name,
        "signal": JOB.signal.name,
        "session": "a",
        "version": 7,
        "value": "answer to a",
        "model": JOB.request.model,
        "promptHash": request_digest(REQUEST),
        "time": 0,
        "attempts": 3,
        "promptTokens": 5,
        "cachedTokens": 3,
        "answerTokens": 2,
    }


def test_nothing_is_visible_that_the_history_did_not_take() -> None:
    world, topic = World(), Topic([letter("a", 7)])
    world.history.full = True
    assert world.run(topic, APPLY)["counts"] == {"timeout": {"failed": 1}}
    assert world.store.records == []
    world.history.full = False
    assert world.run(topic, APPLY)["counts"] == {"timeout": {"redriven": 1}}
    assert len(world.history.answers) == 1


def test_an_old_answer_does_not_come_back_after_the_newer_one_expired() -> None:
    world = World()  # The store has forgotten all that it had.
    world.now = 1_800_000_000.0
    second = 1_000_000
    lives = JOB.signal.ttl_seconds
    old = letter("old", (1_800_000_000 - lives) * second)
    young = letter("young", (1_800_000_000 - lives + 1) * second)
    for order in (RedriveOrder(), APPLY):
        assert world.run(Topic([old, young]), order)["counts"] == {"timeout": {"expired": 1, "redriven": 1}}
    assert world.asked == ["young"]


def test_a_second_redrive_replaces_the_line_of_the_first() -> None:
    written: dict[tuple[str, str], bytes] = {}

    class Bucket:
        def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803 - boto3's
            written[Bucket, Key] = Body

    history = AnswerHistory(Bucket(), "s3a://bucket/streaming-history/shopper")
    version = 1_795_424_400_000_007
    world = World()
    world.history.add = history.add  # type: ignore[method-assign]
    for _ in range(2):
        world.store.versions.clear()
        world.run(Topic([letter("a/é", version)]), APPLY)
    [(bucket, key)] = written
    name = redriven_name("a/é", version)
    assert (bucket, key) == ("bucket", f"streaming-history/shopper/{name}")
    assert name.startswith("date=2026-11-23/hour=09/redriven-")
    assert json.loads(written[bucket, key])["session"] == "a/é"


def test_the_digest_is_that_of_the_text_that_the_job_wrote() -> None:
    # As Jackson writes it: compact, in the order of the fields, and without escapes of letters.
    content = r"café \"x\"\n 🛒"
    text = '{"model":"m","messages":[{"role":"user","content":"' + content + '"}],"max_tokens":12}'
    assert request_digest(json.loads(text)) == hashlib.sha256(text.encode()).hexdigest()
