"""What counts as a fallback, and what the report says about it."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from inference_local.real_time.real_time_outcome import PageView, RealTimeOutcome, outcome_of
from inference_local.report import as_dict, print_report, render_html
from tests.unit.local.report.conftest import document, report_of, summary  # noqa: F401 - fixtures
from tests.unit.local.report.samples import answered, result_of, run_of
from tests.unit.local.report.schema import SCHEMA

RUN = run_of(result_of(answered(0.0, 100.0)))


def outcome(*views: PageView) -> RealTimeOutcome:
    return outcome_of(
        views,
        ["small"],
        deadline_ms=300.0,
        fallback_limit=0.01,
        requests_per_second=20.0,
        warm_up_requests=60,
    )


GOOD = [PageView(0.1, None, 500, 8)] * 199
LATE = PageView(0.3, "DEADLINE")
OUTCOME = outcome(*GOOD, LATE)


def test_pages_and_fallbacks_are_counted() -> None:
    assert (OUTCOME.requests, OUTCOME.fallbacks, OUTCOME.fallback_reasons) == (200, 1, {"DEADLINE": 1})
    assert (OUTCOME.p50_ms, OUTCOME.input_tokens, OUTCOME.output_tokens) == (100.0, 500.0, 8.0)
    assert not OUTCOME.is_bad


@pytest.mark.parametrize(
    "views",
    [[*GOOD, LATE, LATE, LATE], [*GOOD, *[PageView(0.31, None, 500, 8)] * 3], []],
    ids=["fallbacks", "late", "no-pages"],
)
def test_a_missed_goal_is_bad(views: list[PageView]) -> None:
    assert outcome(*views).is_bad


def test_the_percentile_of_the_deadline_follows_the_share_of_fallbacks() -> None:
    """With 5 % fallbacks, the 99th percentile was held against the deadline: 2 % of late pages missed it."""
    views = [*[PageView(0.1)] * 98, PageView(0.31), PageView(0.31)]
    found = outcome(*views)
    assert found.is_bad
    assert not dataclasses.replace(
        outcome_of(
            views,
            ["small"],
            deadline_ms=300.0,
            fallback_limit=0.05,
            requests_per_second=20.0,
            warm_up_requests=0,
        )
    ).is_bad


def test_without_java_nothing_is_claimed() -> None:
    skipped = RealTimeOutcome(models=("small",), skipped="mvn not found")
    assert not skipped.is_bad
    assert skipped.p99_ms is None


@pytest.fixture
def report(report_of: Any) -> Any:  # noqa: F811
    return report_of(RUN, real_time=OUTCOME)


def test_the_section_is_data_and_absent_without_deadlines(report: Any, report_of: Any) -> None:  # noqa: F811
    found = json.loads(json.dumps(as_dict(report), allow_nan=False))
    jsonschema.validate(found, SCHEMA)
    assert {found["realTime"][key] for key in ("requests", "fallbacks")} == {200, 1}
    assert as_dict(report_of(RUN))["realTime"] is None


@pytest.mark.parametrize("width", [60, 120])
def test_the_summary_says_it_all_at_any_width(report: Any, width: int) -> None:
    output = io.StringIO()
    print_report(report, Console(file=output, width=width))
    assert max(len(line) for line in output.getvalue().splitlines() if "curl" not in line) <= width
    text = " ".join(output.getvalue().split())
    for expected in (
        "Real time, small (simulated): a Java ad server answered 200 pages, 20 per second",
        "Time of a page (simulated): p50 100 ms, p99 100 ms, deadline 300 ms.",
        "Fallbacks (simulated): 1 of 200 (0.50 %, at most 1 %): 1 DEADLINE.",
        "Mean tokens: 500 of the prompt, 8 of the answer. 60 pages before them",
    ):
        assert expected in text


def test_the_page_has_the_section_and_a_miss_is_red(report: Any, report_of: Any) -> None:  # noqa: F811
    page = render_html(report, [RUN])
    assert "Fallbacks (simulated): 1 of 200" in page
    assert '<li class="bad">' not in page
    missed = dataclasses.replace(OUTCOME, fallbacks=9)
    assert '<li class="bad">Fallbacks' in render_html(report_of(RUN, real_time=missed), [RUN])
    skipped = RealTimeOutcome(models=("small",), skipped="mvn not found")
    assert "small: SKIPPED. mvn not found." in render_html(report_of(RUN, real_time=skipped), [RUN])
