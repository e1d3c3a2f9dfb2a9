"""The page on streaming shows what the plan computes for a large load."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from inference_blueprints.resources import root

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_streaming_peak.py"))


def test_the_size_follows_the_measurement() -> None:
    peak_of = SCRIPT["peak_of"]
    slow, quick = peak_of(1_000.0), peak_of(100.0)
    # 200,000 calls per second x 1 ms = 200 busy processors, and as much free.
    assert (slow.size.kpus, quick.size.kpus) == (400, 40)
    assert slow.load.calls_per_second == pytest.approx(200_000)
    assert slow.load.in_flight == quick.load.in_flight == pytest.approx(60_000)
    assert slow.job_usd_per_day > 9 * quick.job_usd_per_day
    assert slow.size.max_in_flight >= 60_000
    assert slow.broker_load.ingress_mb_per_second == quick.broker_load.ingress_mb_per_second


def test_memory_decides_where_processors_do_not() -> None:
    peak = SCRIPT["peak_of"](1.0)
    assert peak.size.kpus >= peak.size.in_flight_kpus > peak.size.cpu_kpus


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [
        (1_000.0, "so 2 jobs share the events"),
        (400.0, "AWS must raise the quota of 64 KPUs"),
        (100.0, "It fits AWS's default quota of 64 KPUs"),
    ],
)
def test_the_page_says_which_limits_it_meets(microseconds: float, words: str) -> None:
    written = SCRIPT["page_text"]("<!-- peak -->\nold\n<!-- end of peak -->\n", microseconds)
    assert words in written
    assert "was measured with the whole job" in written
    assert "old" not in written


def test_the_measurement_is_that_of_the_benchmark(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text("[]", "utf-8")
    assert SCRIPT["measured_microseconds"](results) is None
    results.write_text(json.dumps([{"name": SCRIPT["FIGURE"], "value": 321.5}]), "utf-8")
    assert SCRIPT["measured_microseconds"](results) == 321.5
    benchmark = (root() / "benchmarks" / "stream_to_signals.py").read_text("utf-8")
    assert f'PROCESSOR_FIGURE = "{SCRIPT["FIGURE"]}"' in benchmark
