"""The tools around a streaming job, on a real Kafka broker and a real Valkey."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference_contracts.dead_letters import DeadLetter, EventPosition, StreamedAnswer
from inference_contracts.streaming_job import JobKafka, StreamingJobConfiguration
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.processes.child_processes import ProcessGroup
from inference_local.streaming.job_processes import KafkaProcess
from signals.connection import BULK_TIMEOUTS, Address, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter
from streaming.job_topics import TopicError, TopicReader, TopicWriter
from streaming.redrive import Redrive, RedriveOrder, redrive_topic
from streaming.redrive_targets import ModelAnswer, VersionedStore

JOB = StreamingJobConfiguration.from_json(
    (Path(__file__).parents[1] / "runtime" / "streaming" / "job.json").read_text("utf-8")
)
LETTERS, EVENTS = "letters", "events"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobKafka]:
    with ProcessGroup() as processes:
        broker = KafkaProcess(tmp_path_factory.mktemp("kafka"), processes)
        broker.start({LETTERS: (3, 24), EVENTS: (1, 24)})
        yield replace(
            JOB.kafka,
            bootstrap_servers=broker.address,
            authentication="none",
            topic=EVENTS,
            dead_letter_topic=LETTERS,
        )


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ValkeyServer(tmp_path_factory.mktemp("valkey")) as server:
        opened = open_client(Address("127.0.0.1", server.port), BULK_TIMEOUTS)
        yield opened
        opened.close()


class Lines:
    """A history in memory."""

    def __init__(self) -> None:
        self.answers: list[StreamedAnswer] = []

    def add(self, answer: StreamedAnswer) -> None:
        self.answers.append(answer)


def letter(session: str, version: int) -> DeadLetter:
    return DeadLetter(
        job=JOB.name,
        reason="timeout",
        message="no answer",
        at=1,
        attempts=2,
        session=session,
        version=version,
        request={"messages": [{"role": "user", "content": session}]},
    )


def record(session: str, version: int, value: str) -> SignalRecord:
    return SignalRecord(JOB.signal.name, session, value, version, "m", "h", 1, 4_000_000_000)


def test_dead_letters_of_a_topic_become_signals_in_several_calls(kafka: JobKafka, client: Any) -> None:
    # A version of a session whose newest event is of now.
    now = int(time.time()) * 1_000_000
    poison = DeadLetter(
        job=JOB.name,
        reason="poison",
        message="no JSON",
        at=1,
        attempts=0,
        event=b"\xff{",
        source=EventPosition(topic=EVENTS, partition=0, offset=1),
    )
    SignalWriter(client).write([record("s-7", now + 9, "newer")])
    writer, events = TopicWriter(kafka, LETTERS), TopicWriter(kafka, EVENTS)
    for number in range(40):
        writer.write(letter(f"s-{number}", now + 5).to_json().encode())
    writer.write(poison.to_json().encode())
    writer.close()

    reader, store, asked = TopicReader(kafka, LETTERS), VersionedStore(client, JOB.signal.name), list[str]()
    history = Lines()

    def ask(request: Any, session: str) -> ModelAnswer:
        asked.append(session)
        return ModelAnswer(f"answer to {session}")

    event: dict[str, Any] = {"limit": 17}
    seen, done, outcomes = 0, False, Counter[str]()
    while not done:
        step = Redrive(
            JOB,
            RedriveOrder(dry_run=False, events=True, per_second=1000.0),
            ask=ask,
            store=store,
            history=history,
            send=events.write,
        )
        answer = redrive_topic(reader, step, event)
        seen, done = seen + answer["seen"], answer["done"]
        assert answer["failures"] == []
        for counts in answer["counts"].values():
            outcomes.update(counts)
        event |= {"start": answer["start"], "end": answer["end"]}
    reader.close()
    events.close()
    assert seen == 41
    assert outcomes == {"redriven": 40, "superseded": 1}
    assert sorted(asked) == sorted(f"s-{number}" for number in range(40) if number != 7)
    assert {(each.session, each.version) for each in history.answers} == {(each, now + 5) for each in asked}
    assert len(history.answers) == len(asked)
    assert store.newest_version("s-7") == now + 9
    assert {store.newest_version(session) for session in asked} == {now + 5}

    sent = TopicReader(kafka, EVENTS)
    assert [each.value for each in sent.read(sent.oldest(), sent.newest())] == [b"\xff{"]
    sent.close()


def test_an_event_reaches_its_topic_whole(kafka: JobKafka) -> None:
    reader, writer = TopicReader(kafka, EVENTS), TopicWriter(kafka, EVENTS)
    start = reader.newest()
    value = json.dumps({"text": "é" * 1000}).encode()
    writer.write(value, b"s-1")
    assert [each.value for each in reader.read(start, reader.newest())] == [value]
    reader.close()
    writer.close()


def test_a_topic_that_is_not_there_is_told(kafka: JobKafka) -> None:
    with pytest.raises(TopicError, match="the topic absent does not exist"):
        TopicReader(kafka, "absent")
