"""Streams are the same for equal seeds, and have what they say they have."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import StreamingJob
from inference_local.streaming.click_stream import Click, click_stream, expected_of

BEGAN = 1_780_000_000_000
[JOB] = load_blueprint("streaming-g6e").blueprint.spec.streaming


def stream(job: StreamingJob = JOB, seed: int = 7) -> list[Click]:
    return click_stream(job, seconds=60.0, began_millis=BEGAN, seed=seed)


def test_equal_seeds_give_equal_records_and_others_do_not() -> None:
    assert stream() == stream()
    bodies = {click.body for click in stream()}
    assert bodies.isdisjoint(click.body for click in stream(seed=8))


def test_the_load_of_the_blueprint_is_sent() -> None:
    clicks = stream()
    assert [click.due_seconds for click in clicks] == sorted(click.due_seconds for click in clicks)
    assert clicks[0].due_seconds >= 0
    assert clicks[-1].due_seconds <= 61
    kinds = Counter(click.kind for click in clicks)
    assert kinds["event"] == 1200, "20 per second for a minute"
    assert len({click.session for click in clicks}) == 100, "12 events each"
    assert min(kinds["repeated"], kinds["late"], kinds["poison"]) >= 5


def test_events_have_the_fields_of_the_job() -> None:
    sent: dict[bytes, Click] = {}
    for click in stream():
        if click.kind == "poison":
            continue
        fields = json.loads(click.body)
        assert fields["shopper"] == click.session
        assert fields["time"] == click.millis
        assert {"id", "kind", "product", "price"} <= fields.keys()
        if click.kind == "repeated":
            assert sent[click.body].due_seconds < click.due_seconds, "after the event that it repeats"
        else:
            assert click.body not in sent
        sent[click.body] = click
        if click.kind == "late":
            assert click.millis < BEGAN - JOB.session.gap_seconds * 1000 + 60_000
        else:
            assert abs(click.millis - BEGAN - click.due_seconds * 1000) < 30_000


def test_some_events_come_after_newer_ones_of_their_session() -> None:
    newest: dict[str, int] = {}
    swapped = 0
    for click in stream():
        if click.kind == "event":
            swapped += click.millis < newest.get(click.session, 0)
            newest[click.session] = max(click.millis, newest.get(click.session, 0))
    assert swapped >= 10


def test_poison_is_what_no_job_can_read() -> None:
    wrong: Counter[str] = Counter()
    for click in stream():
        if click.kind == "poison":
            try:
                fields = json.loads(click.body)
            except ValueError:
                wrong["json"] += 1
            else:
                wrong["key" if "shopper" not in fields else "time"] += 1
                assert "shopper" not in fields or not isinstance(fields["time"], int)
    assert set(wrong) == {"json", "key", "time"}


def test_without_identifiers_nothing_is_repeated() -> None:
    session = JOB.session.model_copy(update={"id": None})
    kinds = Counter(click.kind for click in stream(JOB.model_copy(update={"session": session})))
    assert kinds["repeated"] == 0


@pytest.mark.parametrize("count", [1, 3, 1200])
def test_a_version_is_the_newest_time_and_the_number_of_events(count: int) -> None:
    events = [Click(0.0, "s", "event", f"{n}".encode(), BEGAN + n) for n in range(count)]
    others = [
        Click(0.0, "s", "repeated", b"0", BEGAN),
        Click(0.0, "s", "late", b"l", BEGAN - 10**9),
        Click(0.0, "s", "poison", b"p", 0),
    ]
    expected = expected_of([*reversed(events), *others])
    assert expected.versions == {"s": (BEGAN + count - 1) * 1000 + min(count, 999)}
    assert (expected.poison, expected.late) == (frozenset({b"p"}), frozenset({b"l"}))
