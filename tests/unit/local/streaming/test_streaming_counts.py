"""What is lost or twice is found, whatever is wrong."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from inference_local.streaming.click_stream import Expected
from inference_local.streaming.streaming_counts import (
    LeftBehind,
    Outage,
    Sighting,
    counts_of,
    is_settled,
    latencies,
    waiting_and_processing,
)

A1, A2, B1, C1 = 1_000_001, 2_000_002, 1_500_001, 1_600_001
EXPECTED = Expected({"a": A2, "b": B1, "c": C1}, frozenset({b"poison"}), frozenset({b"late"}))


def row(session: str, version: int) -> Mapping[str, Any]:
    return {"session": session, "version": version, "promptTokens": 100, "cachedTokens": 60}


def letter(body: bytes, offset: int, reason: str = "poison") -> Mapping[str, Any]:
    return {
        "reason": reason,
        "session": None,
        "version": None,
        "event": base64.b64encode(body).decode(),
        "source": {"topic": "clicks", "partition": 0, "offset": offset},
    }


POISON, LATE = letter(b"poison", 3), letter(b"late", 4, "late")
UNANSWERED = {"reason": "timeout", "session": "c", "version": C1, "event": None, "source": None}
SEEN = (Sighting("a", A1, 1500.0), Sighting("b", B1, 1900.0), Sighting("a", A2, 2600.0))
WHOLE = LeftBehind(
    visible={"a": A2, "b": B1},
    history=[row("a", A1), row("a", A2), row("b", B1)],
    dead_letters=[POISON, LATE, UNANSWERED],
    sightings=SEEN,
)


def test_a_whole_run_has_every_version_once() -> None:
    counts = counts_of(EXPECTED, WHOLE)
    assert (counts.signals, counts.lost, counts.duplicated) == (2, 0, 0)
    assert (counts.dead_letters, counts.repeated_dead_letters) == (3, 0)
    assert counts.dead_letter_reasons == {"late": 1, "poison": 1, "timeout": 1}
    assert (counts.input_tokens, counts.cached_tokens) == (300, 180)
    assert is_settled(EXPECTED, WHOLE)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda found: replace(found, visible={"a": A2}), 1),
        (lambda found: replace(found, visible={"a": A1, "b": B1}), 1),
        (lambda found: replace(found, visible={**found.visible, "c": C1 + 1}), 1),
        (lambda found: replace(found, history=[row("a", A1), row("b", B1)]), 1),
        (lambda found: replace(found, history=[]), 2),
        (lambda found: replace(found, dead_letters=[LATE, UNANSWERED]), 1),
        (lambda found: replace(found, dead_letters=[letter(b"other", 3), LATE, UNANSWERED]), 1),
        (lambda found: replace(found, dead_letters=[POISON, UNANSWERED]), 1),
        (lambda found: replace(found, dead_letters=[POISON, LATE]), 1),
        (lambda found: replace(found, dead_letters=[POISON, LATE, {**UNANSWERED, "version": 7}]), 1),
    ],
    ids=[
        "no-signal",
        "a-former-version-is-visible",
        "a-version-that-nobody-sent",
        "no-history",
        "no-history-at-all",
        "no-poison",
        "other-bytes",
        "no-late-event",
        "no-unanswered-version",
        "another-version-is-unanswered",
    ],
)
def test_what_is_missing_is_lost(change: Callable[[LeftBehind], LeftBehind], lost: int) -> None:
    found = change(WHOLE)
    assert counts_of(EXPECTED, found).lost == lost
    assert not is_settled(EXPECTED, found)


def test_a_version_that_is_answered_and_a_dead_letter_is_visible_once() -> None:
    both = replace(WHOLE, visible={**WHOLE.visible, "c": C1}, history=[*WHOLE.history, row("c", C1)])
    counts = counts_of(EXPECTED, both)
    assert (counts.signals, counts.lost, counts.duplicated) == (3, 0, 0)


def test_repetitions_are_found() -> None:
    twice = replace(WHOLE, history=[*WHOLE.history, row("b", B1)])
    assert counts_of(EXPECTED, twice).duplicated == 1
    for again in (Sighting("a", A2, 2700.0), Sighting("a", A1, 2700.0)):
        assert counts_of(EXPECTED, replace(WHOLE, sightings=(*SEEN, again))).duplicated == 1
    repeated = replace(WHOLE, dead_letters=[*WHOLE.dead_letters, POISON, UNANSWERED])
    counts = counts_of(EXPECTED, repeated)
    assert (counts.dead_letters, counts.repeated_dead_letters, counts.duplicated) == (3, 2, 0)


def test_times_count_from_the_newest_event_and_leave_out_the_outage() -> None:
    assert [each.latency_millis for each in SEEN] == [500.0, 400.0, 600.0]
    assert list(latencies(SEEN, None)) == pytest.approx([500.0, 598.0, 600.0])
    outage = Outage(killed_millis=1600.0, recovered_millis=9000.0)
    during, after = Sighting("d", 8_000_001, 9500.0), Sighting("e", 9_100_001, 9900.0)
    assert latencies((*SEEN, during, after), outage)[0] == pytest.approx(650.0), "500 before and 800 after"
    assert latencies((*SEEN, during), outage)[2] == 1500.0
    assert latencies((), None) == (None, None, None)


def test_waiting_ends_where_the_call_that_answered_begins() -> None:
    """The debounce was counted as if the job were slow. An event whose version was replaced waits too."""
    history = [
        {"session": "a", "version": 1_400_002, "time": 2_100, "callMillis": 300},
        {"session": "b", "version": 1_000_001, "time": 1_900, "callMillis": 400},
    ]
    seen = (Sighting("b", 1_000_001, 1_950.0), Sighting("a", 1_400_002, 2_150.0))
    found = LeftBehind({}, history, [], seen)
    events = [("a", 1_000), ("a", 1_400), ("b", 1_000), ("c", 1_000)]
    calm = Outage(killed_millis=1e12, recovered_millis=1e12)
    assert waiting_and_processing(events, found, calm) == ([800.0, 400.0, 500.0], [350.0, 350.0, 450.0])
    down = Outage(killed_millis=1_960.0, recovered_millis=9_000.0)
    assert waiting_and_processing(events, found, down) == ([500.0], [450.0])
