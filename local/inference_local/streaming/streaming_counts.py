"""Counts what a streaming job made of a stream, from what it left behind and not from what it says."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference_blueprints.measure.statistics import percentile
from inference_local.streaming.click_stream import VERSION_TIME, Expected


@dataclass(frozen=True, slots=True)
class Sighting:
    """A version that readers of the signal store saw."""

    session: str
    """Key of the session."""
    version: int
    seen_millis: float
    """When it became visible, in milliseconds since 1970."""

    @property
    def latency_millis(self) -> float:
        """Time from the newest event of the version until the version was visible."""
        return self.seen_millis - self.version // VERSION_TIME


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which the job did not run."""

    killed_millis: float
    recovered_millis: float
    """`killed_millis`, `recovered_millis`: When it was killed, and when the first signal after that was
    visible; milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What a job left behind."""

    visible: Mapping[str, int]
    """Version of each session in the signal store."""
    history: Sequence[Mapping[str, Any]]
    """Rows of the history files."""
    dead_letters: Sequence[Mapping[str, Any]]
    """Records of the topic of dead letters."""
    sightings: Sequence[Sighting]
    """Versions in the order in which they became visible."""


@dataclass(frozen=True, slots=True)
class StreamingCounts:
    """Counts of a stream."""

    signals: int
    """Sessions whose newest version is visible."""
    dead_letters: int
    """Different dead letters."""
    dead_letter_reasons: Mapping[str, int]
    """How many for each reason."""
    repeated_dead_letters: int
    """Dead letters that a restart wrote again."""
    lost: int
    """Sessions whose newest version is neither visible nor a dead letter, or whose visible version is not in
    the history; records that should be dead letters and are not."""
    duplicated: int
    """Rows of the history that repeat a version, and versions that became visible again after a newer one."""
    input_tokens: int
    """Tokens of the prompts of all answers."""
    cached_tokens: int
    """How many of them the engines had in their prefix caches."""


def counts_of(expected: Expected, found: LeftBehind) -> StreamingCounts:
    """Count.

    expected: What the job had to make of the stream.
    found: What it left behind.
    """
    letters = Counter(_identity(letter) for letter in found.dead_letters)
    unanswered = {(session, version) for kind, session, version in letters if kind == "version"}
    bodies = {body for kind, body, _ in letters if kind == "event"}
    rows = Counter((str(row["session"]), int(row["version"])) for row in found.history)
    newest = set(expected.versions.items())
    visible = set(found.visible.items())
    # Each session and each record counts once, however much of it is missing.
    missing = {session for session, version in newest if (session, version) not in visible | unanswered}
    missing |= {session for session, version in visible if (session, version) not in rows}
    records = expected.poison | expected.late
    return StreamingCounts(
        signals=len(newest & visible),
        dead_letters=len(letters),
        dead_letter_reasons=_reasons(found.dead_letters),
        repeated_dead_letters=letters.total() - len(letters),
        lost=len(missing) + len(records - bodies),
        duplicated=rows.total() - len(rows) + _seen_again(found.sightings),
        input_tokens=sum(int(row["promptTokens"]) for row in found.history),
        cached_tokens=sum(int(row["cachedTokens"]) for row in found.history),
    )


def is_settled(expected: Expected, found: LeftBehind) -> bool:
    """Return whether the job has nothing more to do: nothing that it must leave behind is missing."""
    return counts_of(expected, found).lost == 0


def latencies(
    sightings: Iterable[Sighting], outage: Outage | None
) -> tuple[float | None, float | None, float | None]:
    """Return p50 and p99 of the time from event to signal outside of an outage, and the longest time of all.

    sightings: Versions that became visible.
    outage: When the job was down. A version counts as within it if its newest event came before the recovery
        and it was visible after the kill.
    Returns: Milliseconds. None if there is no such version.
    """
    all_of_them = list(sightings)
    calm = [
        each.latency_millis
        for each in all_of_them
        if outage is None
        or each.seen_millis < outage.killed_millis
        or each.version // VERSION_TIME > outage.recovered_millis
    ]
    longest = max((each.latency_millis for each in all_of_them), default=None)
    return percentile(calm, 50), percentile(calm, 99), longest


def waiting_and_processing(
    events: Iterable[tuple[str, int]], found: LeftBehind, outage: Outage
) -> tuple[list[float], list[float]]:
    """Return how long events waited for the call that answered them, and how long it took, in milliseconds.

    An event waits for the debounce, for newer events that replace its version, and for a place among calls.
    From the start of the call until readers see the signal, it is processed.

    events: Session and time of each event that was sent at its time, in milliseconds since 1970.
    outage: When the job was down. Events of that time, and those that were visible after it began, are left
        out.
    """
    began = {
        (str(row["session"]), int(row["version"])): int(row["time"]) - int(row["callMillis"])
        for row in found.history
    }
    seen: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in found.sightings:
        seen[sighting.session].append(sighting)
    waiting, processing = [], []
    for session, millis in events:
        shown = next((each for each in seen[session] if each.version // VERSION_TIME >= millis), None)
        start = began.get((session, shown.version)) if shown else None
        if shown is None or start is None:
            continue
        if shown.seen_millis < outage.killed_millis or millis > outage.recovered_millis:
            waiting.append(max(0.0, start - millis))
            processing.append(shown.seen_millis - start)
    return waiting, processing


def _identity(letter: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Return what a dead letter is about: one version of a session, or the bytes of one event."""
    if letter.get("version") is not None:
        return "version", str(letter["session"]), int(letter["version"])
    source = letter["source"] or {}
    return "event", base64.b64decode(letter["event"]), (source.get("partition"), source.get("offset"))


def _reasons(letters: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    different = {_identity(letter): str(letter["reason"]) for letter in letters}
    return dict(sorted(Counter(different.values()).items()))


def _seen_again(sightings: Iterable[Sighting]) -> int:
    """Return how often a session's visible version did not grow."""
    newest: dict[str, int] = {}
    again = 0
    for each in sightings:
        again += each.version <= newest.get(each.session, -1)
        newest[each.session] = max(each.version, newest.get(each.session, -1))
    return again
