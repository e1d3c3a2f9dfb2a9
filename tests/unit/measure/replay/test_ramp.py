"""A ramp leaves out requests, so that their rate rises to the peak and falls again."""

from __future__ import annotations

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.replay.scaled_trace import ScaledRequest, scale, shipped_trace
from inference_blueprints.measure.replay.trace_replay import (
    POINTS,
    TWO_RAMPS,
    apply_ramp,
    long_enough,
    share_at,
)
from inference_blueprints.serving.traffic import own_means

REQUESTS = [ScaledRequest(number / 10, 10, 10, ()) for number in range(10_000)]


def test_the_rate_rises_to_the_peak_and_falls_again() -> None:
    kept = apply_ramp(REQUESTS, 1000.0, seed=1)
    counts = [
        sum(begin <= each.arrival_seconds < begin + 100 for each in kept) for begin in range(0, 1000, 100)
    ]
    assert max(counts) == counts[4] == 1000  # the trace's own rate
    assert counts[0] < 200 > counts[-1]
    assert counts[:5] == sorted(counts[:5])


def test_the_first_request_stays_and_order_is_kept() -> None:
    kept = apply_ramp(REQUESTS, 1000.0, seed=2)
    assert kept[0] is REQUESTS[0]
    assert list(kept) == sorted(kept, key=lambda each: each.arrival_seconds)


@pytest.mark.parametrize("peak", [0.5, 12.0])
def test_requests_arrive_until_the_end(peak: float) -> None:
    (model,) = load_blueprint("elastic-g6e").blueprint.spec.models
    workload = own_means(model).model_copy(update={"peak_requests_per_second": peak})
    scaled = scale(long_enough(shipped_trace(), peak, 300.0), workload, 8192, seconds=300.0)
    assert scaled.requests[-1].arrival_seconds > 290
    kept = apply_ramp(scaled.requests, 300.0, seed=1)
    first, peaking, last = (
        sum(begin <= each.arrival_seconds < begin + 45 for each in kept) for begin in (0, 120, 255)
    )
    assert 2 * first < peaking > 2 * last


def test_two_ramps_are_equal_and_stay_above_the_collapse_of_demand() -> None:
    times = [number / 100 for number in range(50)]
    first, second = ([share_at(begin + each, TWO_RAMPS) for each in times] for begin in (0.0, 0.5))
    assert first == pytest.approx(second)
    assert (min(first), max(first)) == (0.4, 1.0)
    assert share_at(0.475, POINTS) == 1.0
