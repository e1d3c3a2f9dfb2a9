"""A stream of events with a known number of sessions, and of events that are repeated, late or broken."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from inference_blueprints.spec.types import StreamingJob
from inference_contracts.units import MILLISECONDS_PER_SECOND

Kind = Literal["event", "repeated", "late", "poison"]

#: One in so many events is sent twice.
_REPEATED_EVERY = 20
#: One in so many sessions gets an event from before its gap.
_LATE_EVERY = 8
#: One in so many events is followed by one that cannot be read.
_POISON_EVERY = 40
#: One in so many events is sent after the next one of its session.
_SWAPPED_EVERY = 15
#: A session fits into this share of the stream.
_LONGEST_SESSION = 0.5
_AFTER_SECONDS = 0.2
_LATE_MILLIS = 60_000
#: What a job counts of a session's events in a version.
_MAX_COUNTED = 999
#: Factor of the time in a version.
VERSION_TIME = 1000


@dataclass(frozen=True, slots=True)
class Click:
    """One record of the topic."""

    due_seconds: float
    """When it is sent, in seconds since the start."""
    session: str
    """Key of its session, which is also the record's key."""
    kind: Kind
    """What the job should make of it."""
    body: bytes
    """Its bytes."""
    millis: int
    """Time in the event, in milliseconds since 1970. 0 if it cannot be read."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a job must make of a stream."""

    versions: Mapping[str, int]
    """Newest version of each session."""
    poison: frozenset[bytes]
    late: frozenset[bytes]
    """`poison`, `late`: Bodies of the records that must become dead letters."""


def click_stream(job: StreamingJob, *, seconds: float, began_millis: int, seed: int) -> list[Click]:
    """Return the records of a stream, in the order in which they are due.

    Equal arguments give equal records. The load of the blueprint decides how many events come per second and
    per session; a session's time is shortened so that sessions end within the stream.

    job: Its fields, examples and load.
    seconds: Length of the stream.
    began_millis: When it begins, in milliseconds since 1970. Times of events count from it.
    seed: Decides which events come when.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    each = max(1, round(job.load.events_per_session))
    sessions = max(1, round(job.load.events_per_second * seconds / each))
    lasts = min(job.load.session_seconds, seconds * _LONGEST_SESSION)
    clicks: list[Click] = []
    maker = _Maker(job, began_millis, seed)
    for number in range(sessions):
        start = chance.uniform(0.0, seconds - lasts)
        times = sorted(start + chance.uniform(0.0, lasts) for _ in range(each))
        clicks += _session(
            maker, f"session-{seed}-{number}", times, chance, is_late=number % _LATE_EVERY == 1
        )
    return sorted(clicks, key=lambda click: click.due_seconds)


def expected_of(clicks: Iterable[Click]) -> Expected:
    """Return what a job must make of records, by the definition of a version.

    A version is the time of the session's newest event in milliseconds times 1000, plus the number of the
    session's events, up to 999.

    clicks: The records.
    """
    clicks = list(clicks)
    events: dict[str, list[int]] = defaultdict(list)
    for click in clicks:
        if click.kind == "event":
            events[click.session].append(click.millis)
    return Expected(
        {
            session: max(times) * VERSION_TIME + min(len(times), _MAX_COUNTED)
            for session, times in events.items()
        },
        frozenset(click.body for click in clicks if click.kind == "poison"),
        frozenset(click.body for click in clicks if click.kind == "late"),
    )


class _Maker:
    """Makes the bodies of events."""

    def __init__(self, job: StreamingJob, began_millis: int, seed: int) -> None:
        self._job = job
        self._began = began_millis
        self._seed = seed
        self._count = 0

    def event(self, session: str, seconds: float, due: float, kind: Kind = "event") -> Click:
        millis = self._began + round(seconds * MILLISECONDS_PER_SECOND)
        fields = self._fields(session)
        fields[self._job.session.time] = millis
        return Click(due, session, kind, json.dumps(fields).encode(), millis)

    def poison(self, session: str, due: float) -> Click:
        fields = self._fields(session)
        wrong = self._count % 3
        if wrong == 0:
            body = f"not JSON, {self._count}".encode()
        else:
            fields[self._job.session.time] = (
                self._began + round(due * MILLISECONDS_PER_SECOND) if wrong == 1 else "yesterday"
            )
            if wrong == 1:
                del fields[self._job.session.key]
            body = json.dumps(fields).encode()
        return Click(due, session, "poison", body, 0)

    @property
    def repeats(self) -> bool:
        """Whether the job can know a repeated event."""
        return self._job.session.id is not None

    @property
    def gap_seconds(self) -> float:
        """Time after which an older event is late."""
        return self._job.session.gap_seconds + _LATE_MILLIS / MILLISECONDS_PER_SECOND

    def _fields(self, session: str) -> dict[str, Any]:
        examples = self._job.events.examples
        fields: dict[str, Any] = dict(examples[self._count % len(examples)])
        self._count += 1
        fields[self._job.session.key] = session
        # Where events have no identifier, this field makes every body different.
        fields[self._job.session.id or "number"] = f"{self._seed}-{self._count}"
        return fields


def _session(
    maker: _Maker, session: str, times: list[float], chance: random.Random, *, is_late: bool
) -> list[Click]:
    """Return the records of one session."""
    clicks = [maker.event(session, seconds, seconds) for seconds in times]
    for first in range(len(clicks) - 1):
        if chance.randrange(_SWAPPED_EVERY) == 0:
            one, two = clicks[first], clicks[first + 1]
            clicks[first] = _due(two, one.due_seconds)
            clicks[first + 1] = _due(one, two.due_seconds)
    more = []
    for click in clicks:
        if maker.repeats and chance.randrange(_REPEATED_EVERY) == 0:
            more.append(
                Click(click.due_seconds + _AFTER_SECONDS, session, "repeated", click.body, click.millis)
            )
        if chance.randrange(_POISON_EVERY) == 0:
            more.append(maker.poison(session, click.due_seconds + _AFTER_SECONDS))
    if is_late:
        last = clicks[-1].due_seconds
        more.append(maker.event(session, times[0] - maker.gap_seconds, last + _AFTER_SECONDS, "late"))
    return [*clicks, *more]


def _due(click: Click, seconds: float) -> Click:
    return Click(seconds, click.session, click.kind, click.body, click.millis)
