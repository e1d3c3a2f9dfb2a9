"""The page on streaming shows what the plan computes for a large load."""

from __future__ import annotations

import json
import runpy

import pytest

import inference_catalog as catalog
from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_streaming_peak.py"))


def test_the_peak_has_the_size_of_the_plan() -> None:
    peak, cost = SCRIPT["stream_peak"](100_000.0), catalog.job_load()
    assert peak.load.calls_per_second == pytest.approx(100_000)
    assert peak.load.in_flight == pytest.approx(30_000)
    busy = peak.load.events_per_second * cost.microseconds_per_event
    busy += peak.load.calls_per_second * cost.microseconds_per_call
    # As much time is free.
    assert peak.size.kpus - 1 < 2 * busy / 1e6 <= peak.size.kpus


@pytest.mark.parametrize(
    ("calls_per_second", "words"),
    [
        (1_000_000.0, "at most 256 subtasks: `shards: 16` divides the job"),
        (200_000.0, "AWS must raise the quota of 64 KPUs per application, or `shards: 4` divides the job"),
        (20_000.0, "It fits AWS's default quota of 64 KPUs"),
    ],
)
def test_the_page_says_which_limits_it_meets(calls_per_second: float, words: str) -> None:
    written = SCRIPT["page_text"]("<!-- peak -->\nold\n<!-- end of peak -->\n", calls_per_second)
    assert words in written
    assert "old" not in written


def test_the_plan_sizes_by_what_the_benchmark_measured() -> None:
    """The sum of separate measurements was smaller than what the whole job takes."""
    results = json.loads((root() / "benchmarks" / "results.json").read_text("utf-8"))
    measured = {each["name"]: each["value"] for each in results["figures"]}
    cost = catalog.job_load()
    for name, events in (("one_event", 1), ("four_events", 4)):
        planned = cost.microseconds_per_call + events * cost.microseconds_per_event
        assert planned == pytest.approx(measured[f"stream_processor_time_{name}_us"], rel=0.02)
