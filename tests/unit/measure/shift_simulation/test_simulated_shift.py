"""How the workers of a model become one row, and which demand a trace becomes."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from inference_blueprints.measure.shift_simulation.simulated_shift import ModelSharing, simulated_shift
from inference_blueprints.measure.shift_simulation.traced_workers import (
    MovedWorkers,
    TracedWorkers,
    WayTraces,
    traced_workers,
)
from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates
from inference_blueprints.serving.estimates.worker_start import StartPart, WorkerStart
from inference_contracts.errors import UserError
from inference_contracts.shift_names import ShiftedWorkers
from inference_decisions.capacity_shift.shift_view import ShiftSettings

SETTINGS = ShiftSettings(action="shift")
HOUR, DAY = 60, 1440


def moved(
    release: str,
    role: str = "worker",
    *,
    maximum: int = 10,
    accelerators: int = 1,
    capacity: float = 10.0,
    peak: float = 5.0,
    places: int = 0,
) -> MovedWorkers:
    workers = ShiftedWorkers(
        name=f"{release}-{role}",
        namespace="inference",
        release=release,
        role=role,
        model="chat",
        pool="l40s",
        least=1,
        most=maximum,
        capacity=capacity,
        accelerators=accelerators,
    )
    return MovedWorkers(
        workers=workers,
        places=places,
        reason="",
        peak_requests_per_second=peak,
        seconds=2.0,
        start=WorkerStart((StartPart("launch", 60.0, "measured"),)),
    )


def traced(workers: MovedWorkers, *demand: float) -> TracedWorkers:
    """Return workers with a day of the first demand, and an hour of each one."""
    values = numpy.concatenate([numpy.full(DAY, demand[0]), *(numpy.full(HOUR, each) for each in demand)])
    return TracedWorkers(moved=workers, seconds=2.0, is_measured=False, values=values)


def rows(*found: TracedWorkers) -> dict[str, ModelSharing]:
    return {each.way: each for each in simulated_shift(found, SETTINGS)}


def test_hours_count_by_accelerators() -> None:
    both = rows(
        traced(moved("small"), 50.0, 50.0),
        traced(moved("large", maximum=5, accelerators=4, capacity=20.0), 25.0, 25.0),
    )
    # Half of ten accelerators and three quarters of twenty, for two hours.
    assert both["oracle"].pool_hours == pytest.approx(60.0)
    assert both["oracle"].freed_hours == pytest.approx(2 * (5 + 15))
    assert both["oracle"].freed_percent == pytest.approx(100.0 * 40 / 60)


def test_the_worst_role_of_a_release_and_the_share_of_a_release_count() -> None:
    prefill = traced(moved("apart", "prefill", maximum=2, capacity=50.0), 10.0, 90.0)
    decode = traced(moved("apart", "decode", maximum=10, capacity=10.0), 10.0, 90.0)
    steady = traced(moved("steady", peak=15.0), 10.0, 10.0)
    alone = [rows(each)["schedule only"].unmet for each in (prefill, decode)]
    # In the second hour the schedule keeps one worker: 50 of 90, or 10 of 90.
    assert alone == [pytest.approx(0.4), pytest.approx(0.8)]
    for each in ((prefill, decode), (decode, prefill)):
        assert rows(*each)["schedule only"].unmet == pytest.approx(0.8)
    assert rows(prefill, decode, steady)["schedule only"].unmet == pytest.approx(0.8 / 4)


def test_places_lend_more_than_whole_workers() -> None:
    apart = rows(traced(moved("chat", places=0), 34.0, 34.0))["shift"]
    shared = rows(traced(moved("chat", places=16), 34.0, 34.0))["shift"]
    assert shared.freed_hours > apart.freed_hours > 0.5
    assert apart.freed_of_oracle_percent < shared.freed_of_oracle_percent <= 100.0


def test_nothing_to_free_is_no_division_by_zero() -> None:
    assert rows(traced(moved("chat"), 100.0, 100.0))["shift"].freed_of_oracle_percent == 100.0


def test_workers_of_a_release_share_its_requests_and_others_do_not() -> None:
    rates = RequestRates((RateWindow(0, 100.0, 2.0), RateWindow(600, 50.0, 2.0)))
    workers = [moved("apart", "prefill"), moved("apart", "decode"), moved("other", peak=10.0)]
    workers.append(moved("twin"))
    prefill, decode, other, twin = traced_workers(workers, WayTraces(rates, {}), None)
    assert prefill.values.tolist() == decode.values.tolist()
    assert prefill.values.tolist() != twin.values.tolist()
    # The trace's peak of 100 becomes 5 requests per second of 2 s each.
    assert prefill.values[:5].mean() == pytest.approx(10.0, rel=0.2)
    assert other.values[:5].mean() == pytest.approx(20.0, rel=0.2)
    assert (
        traced_workers(workers, WayTraces(rates, {}), 4.0)[0].values.tolist()
        == (2.0 * prefill.values).tolist()
    )


def test_a_trace_for_each_way_in(tmp_path: Path) -> None:
    for name, hours in (("chat", 26), ("jobs", 26), ("short", 25)):
        lines = "".join(f"{3600 * hour},{5 + hour}\n" for hour in range(hours))
        (tmp_path / name).write_text(lines)
    chat, jobs, short = (str(tmp_path / name) for name in ("chat", "jobs", "short"))
    one = WayTraces.read([chat])
    assert one.common is one.longest
    two = WayTraces.read([f"chat={chat}", f"nightly={jobs}"])
    two.check_names(["chat", "nightly"])
    assert (two.common, list(two.by_name)) == (None, ["chat", "nightly"])
    for given, expected in (
        ([chat, f"b={jobs}"], "give one file for all"),
        ([f"a={chat}", f"a={jobs}"], "two traces for a"),
        ([f"a={chat}", f"b={short}"], "different length"),
    ):
        with pytest.raises(UserError, match=expected):
            WayTraces.read(given)
    with pytest.raises(UserError, match="allowed are model, queue"):
        two.check_names(["model", "queue"])
