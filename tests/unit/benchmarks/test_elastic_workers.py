"""The benchmark of elastic workers: its worker is that of the plan, its searches and spikes are right."""

from __future__ import annotations

import pytest

from benchmarks import elastic_workers
from benchmarks.harness.load_spikes import LoadSpike, drawn_spikes, with_spikes
from benchmarks.harness.planned_worker import PlannedWorker, ScalingWays, planned_worker
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.plan.sections.cold_starts import COLD_STARTS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates
from inference_blueprints.serving.plan import build_plan
from inference_local.simulators.workers.owners import FixedNumber
from tests.unit.serving.autoscaling.roles import WORKER

HOUR = RequestRates(tuple(RateWindow(600.0 * index, 5.0, 0.0) for index in range(6)))


@pytest.fixture(scope="module")
def worker() -> PlannedWorker:
    return planned_worker("elastic-g6e")


def test_the_worker_starts_as_long_as_the_plan_says(worker: PlannedWorker) -> None:
    blueprint = load_blueprint("elastic-g6e").blueprint
    (start,) = summarise(blueprint, build_plan(blueprint))[COLD_STARTS]
    assert worker.model.cold_start_seconds == pytest.approx(start.known_seconds)
    assert worker.model.objective_seconds == 2.0
    assert worker.prompt_tokens == 3000


def test_every_way_has_ladders_and_elastic_as_planned_has_one_setting(worker: PlannedWorker) -> None:
    ladders = ScalingWays(worker).ladders()
    assert list(map(len, ladders.pop("elastic as planned"))) == [1]
    assert all(len(each) > 5 for way in ladders.values() for each in way)


@pytest.mark.parametrize("needed", range(1, 11))
def test_the_first_setting_that_keeps_the_objective_is_found(needed: int) -> None:
    """A worker serves a request per second; `needed` of them serve the load."""
    days = elastic_workers._Days.of(HOUR.scaled((needed - 0.2) / 5.0), 1, WORKER)
    ladder = [lambda _, number=number: FixedNumber(number) for number in range(1, 11)]
    chosen = elastic_workers._first_that_keeps(ladder, days)
    assert chosen is not None
    assert chosen[0] is ladder[needed - 1]


def test_without_a_setting_that_keeps_it_the_most_generous_is_named() -> None:
    days = elastic_workers._Days.of(HOUR.scaled(2.0), 1, WORKER)
    ladders = [[lambda _, number=number: FixedNumber(number) for number in (1, 2)]]
    tuned = days.simulate(ladders[0][0])
    maximum, how = elastic_workers._at_the_objective(tuned, ladders, days)
    assert maximum == days.simulate(ladders[0][1])
    assert how.startswith(" which keeps at most ")


def test_a_way_that_misses_the_objective_is_raised() -> None:
    days = elastic_workers._Days.of(HOUR, 1, WORKER)
    ladders = [[lambda _, number=number: FixedNumber(number) for number in range(1, 11)]]
    raised, how = elastic_workers._at_the_objective(days.simulate(ladders[0][0]), ladders, days)
    assert (raised.within_objective, how) == (1.0, " raised")
    kept, how = elastic_workers._at_the_objective(days.simulate(ladders[0][9]), ladders, days)
    assert how == ""
    assert kept.accelerator_hours == pytest.approx(10.0)


def test_a_spike_adds_its_rate_for_its_time() -> None:
    spiked = with_spikes(HOUR, [LoadSpike(900.0, 1200.0, 3.0)])
    assert spiked.window_seconds == 60.0
    assert [spiked.window_at(second).rate for second in (870, 930, 1170, 1230)] == [5.0, 8.0, 8.0, 5.0]
    added = sum(each.rate for each in spiked.windows) * 60 - sum(each.rate for each in HOUR.windows) * 600
    assert added == pytest.approx(3.0 * 300)


def test_each_kind_of_spike_comes_once_and_they_do_not_overlap() -> None:
    day = RequestRates(tuple(RateWindow(600.0 * index, 5.0) for index in range(144)))
    spikes = drawn_spikes(day, (1.0, 2.0), (300.0, 900.0), seed=1)
    kinds = {(each.rate, round(each.end_seconds - each.start_seconds)) for each in spikes}
    assert kinds == {(1.0, 300), (1.0, 900), (2.0, 300), (2.0, 900)}
    assert len(spikes) == len(kinds)
    times = [time for each in spikes for time in (each.start_seconds, each.end_seconds)]
    assert times == sorted(times)
    assert times[0] >= 0.0
    assert times[-1] <= day.end_seconds
    assert spikes != drawn_spikes(day, (1.0, 2.0), (300.0, 900.0), seed=2)
