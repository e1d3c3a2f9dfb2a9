"""What the report says about the capacity shift and GPU health."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from inference_blueprints.measure.charts import Curve, Limit, Plot
from inference_local.controllers.controller_outcomes import ControllerOutcomes, GpuHealthOutcome
from inference_local.report import as_dict, print_report, render_html
from inference_local.report.plots import health_plots, shift_plots
from inference_local.report.report_text import health_is_bad, shift_is_bad, shift_lines
from tests.unit.local.report.samples import CAPACITY_SHIFT, GPU_HEALTH, answered, result_of, run_of
from tests.unit.local.report.schema import SCHEMA

RUN = run_of(result_of(answered(0.0, 100.0)))


@pytest.fixture
def report(report_of: Any) -> Any:
    return report_of(RUN, controllers=ControllerOutcomes(CAPACITY_SHIFT, GPU_HEALTH))


def test_both_sections_are_data_and_absent_without_controllers(report: Any, report_of: Any) -> None:
    document = json.loads(json.dumps(as_dict(report), allow_nan=False))
    jsonschema.validate(document, SCHEMA)
    shift, health = document["capacityShift"], document["gpuHealth"]
    assert (len(shift["decisions"]), shift["batchCompleted"], shift["ttftP95Ratio"]) == (2, 400, 1.05)
    assert (health["found"], health["replaced"], health["secondsToServing"]) == (1, 1, 78.0)
    plain = as_dict(report_of(RUN))
    assert (plain["capacityShift"], plain["gpuHealth"]) == (None, None)


@pytest.mark.parametrize("width", [60, 120])
def test_the_summary_says_it_all_at_any_width(report: Any, width: int) -> None:
    output = io.StringIO()
    print_report(report, Console(file=output, width=width))
    assert max(len(line) for line in output.getvalue().splitlines() if "curl" not in line) <= width
    text = " ".join(output.getvalue().split())
    for expected in (
        "Capacity shift (simulated): 2 decisions, 3 changes.",
        "Floor of workers 4 to 8, batch's share of them 0 to 3 workers, accelerators for jobs 5 to 9.",
        "500 ms alone, 525 ms beside batch, 1.05 times as long.",
        "a second of the run is 2 minutes.",
        "1 worker slowed to 50% of its speed, 1 found, 1 replaced, 0 false drains.",
        "Time since the slowdown: found 46 s, cordoned 46 s, drained 71 s, replaced 78 s.",
        "l40s-node-9 serves in its place: it answered 25 requests.",
        "1621 streams meanwhile, 0 cut",
        "its minute lasts 15 s.",
    ):
        assert expected in text


def test_the_page_has_the_plots(report: Any, report_of: Any) -> None:
    page, plain = render_html(report, [RUN]), render_html(report_of(RUN), [RUN])
    assert page.count("<svg") == plain.count("<svg") + 3
    assert "Workers by owner (simulated)" in page
    assert "The slow worker beside its peers (simulated)" in page


def curves(plot: Plot) -> list[list[tuple[float, float]]]:
    return [list(layer.points) for layer in plot.layers if isinstance(layer, Curve)]


def test_workers_are_divided_by_what_is_lent() -> None:
    owners, load = shift_plots(CAPACITY_SHIFT)
    _, batch, floors, interactive = curves(owners)
    assert (batch[-1], interactive[-1]) == ((40.0, 3.0), (40.0, 5.0))
    assert floors[-1] == (30.0, 8.0)
    assert curves(load)[1] == [(0.0, 10.0), (40.0, 60.0)]


def test_the_repair_is_marked_in_the_plot_of_latencies() -> None:
    (plot,) = health_plots(GPU_HEALTH)
    marks = [(layer.value, layer.label) for layer in plot.layers if isinstance(layer, Limit)]
    assert marks == [(10.0, "slowed"), (56.0, "found"), (81.0, "drained"), (88.0, "replaced")]
    peer, slow = curves(plot)
    assert (slow, len(peer)) == ([(0.0, 38.0), (50.0, 78.0)], 3)


def test_runs_without_decisions_or_latencies_have_no_plots() -> None:
    assert shift_plots(dataclasses.replace(CAPACITY_SHIFT, decisions=())) == []
    assert health_plots(dataclasses.replace(GPU_HEALTH, latencies={})) == []


def changed(**fields: Any) -> GpuHealthOutcome:
    return dataclasses.replace(GPU_HEALTH, **fields)


@pytest.mark.parametrize(
    ("outcome", "is_bad"),
    [
        (GPU_HEALTH, False),
        (changed(replaced=0), True),
        (changed(false_drains=1), True),
        (changed(cut_streams=1), True),
        (changed(failed_runs=1), True),
    ],
)
def test_what_went_wrong_with_gpu_health_is_seen(outcome: GpuHealthOutcome, *, is_bad: bool) -> None:
    assert health_is_bad(outcome) == is_bad


def test_what_went_wrong_with_the_shift_is_seen() -> None:
    assert not shift_is_bad(CAPACITY_SHIFT)
    assert shift_is_bad(dataclasses.replace(CAPACITY_SHIFT, batch_lost=1))
    assert shift_is_bad(dataclasses.replace(CAPACITY_SHIFT, decisions=()))
    assert "too busy" in " ".join(shift_lines(dataclasses.replace(CAPACITY_SHIFT, is_timed=False)))
