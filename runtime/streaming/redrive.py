"""The function `streaming.redrive.handle`: asks the model again for dead letters, and writes the answers.

One call handles dead letters for at most ten minutes and says where the next one goes on. Nothing is removed
from the topic: its retention does that. So a redrive can be repeated at any time:

- A dead letter is left out if the store already has its version of the session, or a newer one.
- It is left out as well if its newest event is older than a signal lives. The store may have forgotten that
  it had a newer version, so nothing else would keep the old answer from becoming visible.
- The store compares versions once more when it writes, so an old answer never replaces a newer one.
- The answer is added to the history first. If the store then fails, the next redrive replaces this line.

A dead letter of an event that the job could not use (`EVENT_REASONS`) has no request. It is left alone
unless the caller asks to send the event to its topic again.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import boto3

from inference_contracts.dead_letters import DeadLetter, DeadLetterError, StreamedAnswer, newest_event_seconds
from inference_contracts.platform_key_reader import PlatformKeys
from inference_contracts.streaming_job import StreamingJobConfiguration
from signals.connection import BULK_TIMEOUTS, open_client
from signals.record import InvalidSignalError, SignalRecord
from signals.store_errors import StoreError
from streaming.job_topics import (
    Positions,
    TopicReader,
    TopicRecord,
    event_writer,
    job_configuration,
    store_address,
)
from streaming.redrive_targets import (
    AnswerHistory,
    LetterModel,
    ModelAnswer,
    RedriveError,
    VersionedStore,
)

_CALL_SECONDS: Final = 600.0
_WORKERS: Final = 16
_MAX_FAILURES: Final = 10

#: What became of a dead letter.
Outcome = str
REDRIVEN: Final = "redriven"
SUPERSEDED: Final = "superseded"
EXPIRED: Final = "expired"
FAILED: Final = "failed"
LEFT: Final = "left"
UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class RedriveOrder:
    """What to redrive."""

    reasons: frozenset[str] = frozenset()
    """Reasons of the dead letters; empty for all."""
    events: bool = False
    """Whether events that the job could not read are sent again."""
    dry_run: bool = True
    """Only count."""
    per_second: float = 5.0
    """Most requests and events per second."""
    since_milliseconds: int = 0
    """Leave out dead letters of before; milliseconds since 1970."""


class Model(Protocol):
    """Asks the model."""

    def __call__(self, request: Mapping[str, Any], session: str) -> ModelAnswer:
        """Return the answer to a request. Raises RedriveError if there is none."""


class SignalTarget(Protocol):
    """The signal store."""

    def newest_version(self, session: str) -> int | None:
        """Return the version that readers of a session see."""

    def write(self, record: SignalRecord) -> bool:
        """Write a record, and return whether it is the newest."""


class AnswerLog(Protocol):
    """The history of the job."""

    def add(self, answer: StreamedAnswer) -> None:
        """Add an answer, in place of an earlier one of this version. Raises RedriveError."""


@dataclass(slots=True)
class Redriven:
    """What became of dead letters: their number by reason and outcome, and the first messages of failures.

    Threads add to it.
    """

    counts: dict[str, Counter[Outcome]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, reason: str, outcome: Outcome, message: str = "") -> None:
        """Count a dead letter."""
        with self.lock:
            self.counts.setdefault(reason, Counter())[outcome] += 1
            if message and len(self.failures) < _MAX_FAILURES:
                self.failures.append(message)


class Redrive:
    """Redrives dead letters.

    order: What to redrive.
    send: Writes an event to the events' topic.
    clock, sleep: Seconds, and how to wait.
    now: Seconds since 1970.
    """

    def __init__(
        self,
        job: StreamingJobConfiguration,
        order: RedriveOrder,
        *,
        ask: Model,
        store: SignalTarget,
        history: AnswerLog,
        send: Callable[[bytes, bytes | None], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._job, self._order = job, order
        self._ask, self._store, self._history, self._send = ask, store, history, send
        self._clock, self._sleep, self._now = clock, sleep, now
        self._next_start = clock()
        self._lock = threading.Lock()

    def run(self, records: Iterable[TopicRecord], result: Redriven) -> Iterator[TopicRecord]:
        """Redrive records, and iterate over them as soon as they and all before them are done.

        records: Records of the topic of dead letters.
        result: Takes the counts.
        """
        with ThreadPoolExecutor(_WORKERS) as pool:
            running: dict[Future[None], TopicRecord] = {}
            for record in records:
                running[pool.submit(self._handle, record, result)] = record
                while len(running) >= _WORKERS:
                    yield from self._ended(running)
            while running:
                yield from self._ended(running)

    def _ended(self, running: dict[Future[None], TopicRecord]) -> Iterator[TopicRecord]:
        """Yield the oldest records that are done, after waiting for the oldest one."""
        wait([next(iter(running))], return_when=FIRST_COMPLETED)
        while running and next(iter(running)).done():
            future = next(iter(running))
            record = running.pop(future)
            future.result()
            yield record

    def _handle(self, record: TopicRecord, result: Redriven) -> None:
        try:
            letter = DeadLetter.from_json(record.value)
        except DeadLetterError as error:
            place = f"partition {record.partition}, offset {record.offset}"
            result.add("unknown", UNREADABLE, f"{place}: {error}")
            return
        order = self._order
        if (order.reasons and letter.reason not in order.reasons) or letter.at < order.since_milliseconds:
            return
        try:
            result.add(letter.reason, self._redrive(letter))
        except (RedriveError, InvalidSignalError, StoreError) as error:
            result.add(letter.reason, FAILED, f"{letter.reason}, session {letter.session}: {error}")

    def _redrive(self, letter: DeadLetter) -> Outcome:
        if letter.request is None or letter.session is None or letter.version is None:
            return self._send_event(letter)
        if newest_event_seconds(letter.version) + self._job.signal.ttl_seconds <= self._now():
            return EXPIRED
        newest = self._store.newest_version(letter.session)
        if newest is not None and newest >= letter.version:
            return SUPERSEDED
        if self._order.dry_run:
            return REDRIVEN
        self._pace()
        return self._answer(letter, letter.request, letter.session, letter.version)

    def _answer(self, letter: DeadLetter, request: Mapping[str, Any], session: str, version: int) -> Outcome:
        """Ask the model, and write its answer to the history and to the store."""
        began = self._clock()
        answer = self._ask(request, session)
        signal, model, digest = self._job.signal, self._job.request.model, request_digest(request)
        now = self._now()
        self._history.add(
            StreamedAnswer(
                job=self._job.name,
                signal=signal.name,
                session=session,
                version=version,
                value=answer.text,
                model=model,
                prompt_hash=digest,
                time=round(now * 1000),
                attempts=letter.attempts + 1,
                call_millis=round((self._clock() - began) * 1000),
                prompt_tokens=answer.prompt_tokens,
                cached_tokens=answer.cached_tokens,
                answer_tokens=answer.answer_tokens,
            )
        )
        record = SignalRecord(
            name=signal.name,
            key=session,
            value=answer.text,
            version=version,
            model=model,
            prompt_hash=digest,
            time=int(now),
            expires=int(now) + signal.ttl_seconds,
        )
        return REDRIVEN if self._store.write(record) else SUPERSEDED

    def _send_event(self, letter: DeadLetter) -> Outcome:
        if not self._order.events or letter.event is None:
            return LEFT
        if not self._order.dry_run:
            self._pace()
            # With its session's key, so that it reaches the partition of the other events.
            self._send(letter.event, letter.session.encode() if letter.session else None)
        return REDRIVEN

    def _pace(self) -> None:
        """Wait for the next start. Threads take their starts one after the other."""
        with self._lock:
            now = self._clock()
            start = max(self._next_start, now)
            self._next_start = start + 1 / self._order.per_second
        self._sleep(start - now)


def request_digest(request: Mapping[str, Any]) -> str:
    """Return the digest of a request, which is that of the job for the same request.

    request: Body of a chat completions request.
    """
    body = json.dumps(request, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(body.encode()).hexdigest()


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Redrive dead letters for at most ten minutes.

    event: ``reasons``, ``events``, ``dryRun``, ``perSecond``, ``sinceMilliseconds`` (`RedriveOrder`);
        ``limit``, the most dead letters to look at; ``start`` and ``end``, positions by partition of the
        former answer.
    Returns: ``counts`` by reason and outcome, ``failures``, ``seen``, ``start``, ``end``, ``done``.
    """
    job = job_configuration()
    order = RedriveOrder(
        reasons=frozenset(event.get("reasons", ())),
        events=bool(event.get("events")),
        dry_run=bool(event.get("dryRun", True)),
        per_second=float(event.get("perSecond", 5.0)),
        since_milliseconds=int(event.get("sinceMilliseconds", 0)),
    )
    reader = TopicReader(job.kafka, job.kafka.dead_letter_topic)
    writer = event_writer(job.kafka) if order.events and not order.dry_run else None
    client = open_client(store_address(job.signal.store), BULK_TIMEOUTS)
    redrive = Redrive(
        job,
        order,
        ask=LetterModel(
            job,
            connections=_WORKERS,
            keys=PlatformKeys(boto3.client("secretsmanager"), job.endpoint.door.secret)
            if job.endpoint.door
            else None,
        ),
        store=VersionedStore(client, job.signal.name),
        history=AnswerHistory(boto3.client("s3"), job.history.uri),
        send=writer.write if writer else _refuse,
    )
    try:
        return redrive_topic(reader, redrive, event)
    finally:
        reader.close()
        client.close()
        if writer:
            writer.close()


def redrive_topic(reader: TopicReader, redrive: Redrive, event: Mapping[str, Any]) -> dict[str, Any]:
    """Redrive the dead letters between two positions, and say where to go on.

    reader: Topic of the dead letters.
    redrive: Redrives them.
    event: ``limit``, ``start`` and ``end`` of the function's event.
    """
    oldest = reader.oldest()
    end = _positions(event.get("end")) or reader.newest()
    asked = _positions(event.get("start")) or {}
    # Retention may have passed a position since the former call.
    start = {number: max(place, asked.get(number, 0)) for number, place in oldest.items()}
    until, limit, seen, result = time.monotonic() + _CALL_SECONDS, event.get("limit"), 0, Redriven()
    done = True

    def bounded() -> Iterator[TopicRecord]:
        nonlocal done
        for number, record in enumerate(reader.read(start, end)):
            if time.monotonic() > until or (limit is not None and number >= limit):
                done = False
                return
            yield record

    for record in redrive.run(bounded(), result):
        start[record.partition] = record.offset + 1
        seen += 1
    return {
        "counts": {reason: dict(outcomes) for reason, outcomes in sorted(result.counts.items())},
        "failures": result.failures,
        "seen": seen,
        "start": {str(number): place for number, place in start.items()},
        "end": {str(number): place for number, place in end.items()},
        "done": done,
    }


def _positions(given: Mapping[str, int] | None) -> Positions | None:
    return {int(number): place for number, place in given.items()} if given else None


def _refuse(_: bytes, __: bytes | None) -> None:
    raise AssertionError("a dry run sends nothing")
