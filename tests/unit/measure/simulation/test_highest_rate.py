"""The search finds the highest rate on its steps, and measures each rate once."""

from __future__ import annotations

import pytest

from inference_blueprints.measure.simulation.highest_rate import STEP, RateSearch
from inference_blueprints.measure.simulation.offline_replay import Latencies, SimulatedReplay
from inference_blueprints.spec.types import LatencyPercentiles, Objectives


def _result(first: float, each: float) -> SimulatedReplay:
    latencies = (_alike(first), _alike(each), Latencies(0, 0, 5 * each, 6 * each, 7 * each))
    return SimulatedReplay(*latencies, 1.0, 0.0)


def _alike(ninetieth: float) -> Latencies:
    return Latencies(0, ninetieth, 0, 0, 0)


class Service:
    """Latencies that grow with the rate."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def measure(self, rate: float) -> SimulatedReplay:
        self.asked.append(rate)
        return _result(first=10 * rate, each=rate)


@pytest.mark.parametrize("limit", [1.0, 13.7, 900.0])
def test_the_highest_rate_is_found_within_a_step(limit: float) -> None:
    rate, result = RateSearch(Service().measure).highest(
        Objectives(time_per_output_token_p90_ms=limit).stated
    )
    assert rate <= limit < rate * STEP
    assert result is not None
    assert result.time_per_output_token.p90 == rate


def test_the_tighter_limit_decides() -> None:
    rate, _ = RateSearch(Service().measure).highest(
        Objectives(time_to_first_token_p90_ms=50.0, time_per_output_token_p90_ms=20.0).stated
    )
    assert rate <= 5.0 < rate * STEP


@pytest.mark.parametrize(("percentile", "factor"), [("p95", 5), ("p99", 6)])
def test_other_percentiles_and_whole_requests_are_judged_by_their_own_figure(
    percentile: str, factor: int
) -> None:
    """A replay was judged by the 90th percentile of the first token and of each token alone."""
    wanted = Objectives(request_ms=LatencyPercentiles(**{percentile: 600.0})).stated
    rate, _ = RateSearch(Service().measure).highest(wanted)
    assert factor * rate <= 600 < factor * rate * STEP


def test_a_percentile_that_a_replay_does_not_report_is_judged_by_the_next_higher_one() -> None:
    """The deadline of 2 % fallbacks is about the 98th; the one below makes a replay look faster."""
    latencies = Latencies(1, 2, 3, 4, 5)
    assert [latencies.at(each) for each in (0, 50, 90, 92, 98, 99, 99.9)] == [1, 1, 2, 3, 4, 4, 5]


def test_what_never_holds_has_no_rate() -> None:
    assert RateSearch(Service().measure).highest(Objectives(time_to_first_token_p90_ms=0.1).stated) == (
        0.0,
        None,
    )


def test_several_limits_share_what_was_measured() -> None:
    service = Service()
    search = RateSearch(service.measure)
    search.highest(Objectives(time_per_output_token_p90_ms=20.0).stated)
    first = search.replays
    search.highest(Objectives(time_per_output_token_p90_ms=21.0).stated)
    assert search.replays - first < first / 2
    assert len(service.asked) == len(set(service.asked)) == search.replays
