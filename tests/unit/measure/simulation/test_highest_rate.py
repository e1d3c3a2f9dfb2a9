"""The search finds the highest rate on its steps, and measures each rate once."""

from __future__ import annotations

import pytest

from inference_blueprints.measure.simulation.highest_rate import STEP, LatencyLimits, RateSearch
from inference_blueprints.measure.simulation.offline_replay import Latencies, SimulatedReplay


def _result(first: float, each: float) -> SimulatedReplay:
    return SimulatedReplay(Latencies(0, first, 0), Latencies(0, each, 0), Latencies(0, 0, 0), 1.0, 0.0)


class Service:
    """Latencies that grow with the rate."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def measure(self, rate: float) -> SimulatedReplay:
        self.asked.append(rate)
        return _result(first=10 * rate, each=rate)


@pytest.mark.parametrize("limit", [1.0, 13.7, 900.0])
def test_the_highest_rate_is_found_within_a_step(limit: float) -> None:
    rate, result = RateSearch(Service().measure).highest(LatencyLimits(time_per_output_token_p90_ms=limit))
    assert rate <= limit < rate * STEP
    assert result is not None
    assert result.time_per_output_token.p90 == rate


def test_the_tighter_limit_decides() -> None:
    rate, _ = RateSearch(Service().measure).highest(LatencyLimits(50.0, 20.0))
    assert rate <= 5.0 < rate * STEP


def test_what_never_holds_has_no_rate() -> None:
    assert RateSearch(Service().measure).highest(LatencyLimits(0.1)) == (0.0, None)


def test_several_limits_share_what_was_measured() -> None:
    service = Service()
    search = RateSearch(service.measure)
    search.highest(LatencyLimits(time_per_output_token_p90_ms=20.0))
    first = search.replays
    search.highest(LatencyLimits(time_per_output_token_p90_ms=21.0))
    assert search.replays - first < first / 2
    assert len(service.asked) == len(set(service.asked)) == search.replays
