"""What the report says about a replayed stream."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from inference_blueprints.measure.statistics import Percentiles
from inference_local.report import as_dict, print_report, render_html
from inference_local.streaming.streaming_outcome import (
    EventToSignal,
    StreamingOutcome,
    streaming_lines,
)
from tests.unit.local.report.conftest import document, report_of, summary  # noqa: F401 - fixtures
from tests.unit.local.report.samples import answered, result_of, run_of
from tests.unit.local.report.schema import SCHEMA

RUN = run_of(result_of(answered(0.0, 100.0)))
OUTCOME = StreamingOutcome(
    job="shopper",
    not_run=("prices",),
    events=1290,
    sessions=100,
    repeated=60,
    late=12,
    poison=30,
    signals=99,
    superseded=17,
    dead_letters=43,
    dead_letter_reasons={"late": 12, "poison": 30, "timeout": 1},
    repeated_dead_letters=4,
    kills=1,
    recovery_seconds=8.55,
    event_to_signal_ms=EventToSignal(868.0, 1297.2, 9704.2),
    waiting_ms=Percentiles(520.0, 610.0, 650.0, 700.0),
    processing_ms=Percentiles(348.0, 410.0, 500.0, 640.0),
    prefix_cache_hit_ratio=0.6,
    events_per_second=21.5,
)


@pytest.fixture
def report(report_of: Any) -> Any:  # noqa: F811
    return report_of(RUN, streaming=OUTCOME)


def test_the_section_is_data_and_absent_without_jobs(report: Any, report_of: Any) -> None:  # noqa: F811
    found = json.loads(json.dumps(as_dict(report), allow_nan=False))
    jsonschema.validate(found, SCHEMA)
    streaming = found["streaming"]
    assert (streaming["deadLetters"], streaming["eventToSignalMs"]["p99"]) == (43, 1297.2)
    assert as_dict(report_of(RUN))["streaming"] is None


@pytest.mark.parametrize("width", [60, 120])
def test_the_summary_says_it_all_at_any_width(report: Any, width: int) -> None:
    output = io.StringIO()
    print_report(report, Console(file=output, width=width))
    assert max(len(line) for line in output.getvalue().splitlines() if "curl" not in line) <= width
    text = " ".join(output.getvalue().split())
    for expected in (
        "Streaming job shopper (simulated): 1,290 events of 100 sessions, 21.5 per second; 60 of them "
        "repeated, 12 late, 30 unreadable.",
        "99 of 100 sessions have the signal of their newest version; 17 versions superseded; 43 dead letters "
        "(12 late, 30 poison, 1 timeout); 0 lost, 0 duplicated.",
        "From event to signal (simulated): p50 868 ms, p99 1,297 ms",
        "Of it (simulated): an event waits p50 520 ms, p99 700 ms for the debounce,",
        "from the call to the signal p50 348 ms, p99 640 ms.",
        "from its newest checkpoint: the next signal was there after 8.6 s.",
        "is 9,704 ms. 4 dead letters were written again.",
        "Prefix cache hits (simulated): 60.0% of the prompt tokens.",
        "Not run here: prices.",
    ):
        assert expected in text


def test_the_page_has_the_section_and_a_loss_is_red(report: Any, report_of: Any) -> None:  # noqa: F811
    page = render_html(report, [RUN])
    assert "43 dead letters" in page
    assert '<li class="bad">' not in page
    for changed in (dataclasses.replace(OUTCOME, lost=1), dataclasses.replace(OUTCOME, duplicated=1)):
        assert '<li class="bad">Streaming' in render_html(report_of(RUN, streaming=changed), [RUN])


def test_what_is_unknown_is_said() -> None:
    text = " ".join(
        streaming_lines(StreamingOutcome(job="a", events=3, sessions=1, kills=1), simulated=False)
    )
    assert "unknown versions superseded" in text
    assert "no signal came after it" in text
    assert "Prefix cache hits: unknown" in text
    skipped = StreamingOutcome(job="a", skipped="mvn not found")
    assert streaming_lines(skipped, simulated=True) == ["Streaming job a: SKIPPED. mvn not found."]
    assert not skipped.is_bad
