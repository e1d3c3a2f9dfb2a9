"""A ramp leaves out requests, so that their rate rises to the peak and falls again."""

from __future__ import annotations

from inference_blueprints.measurement.replay.ramp import ramped
from inference_blueprints.measurement.replay.scaled_trace import ScaledRequest

REQUESTS = [ScaledRequest(number / 10, 10, 10, ()) for number in range(10_000)]


def test_the_rate_rises_to_the_peak_and_falls_again() -> None:
    kept = ramped(REQUESTS, 1000.0, seed=1)
    counts = [
        sum(begin <= each.arrival_seconds < begin + 100 for each in kept) for begin in range(0, 1000, 100)
    ]
    assert max(counts) == counts[4] == 1000  # the trace's own rate
    assert counts[0] < 200 > counts[-1]
    assert counts[:5] == sorted(counts[:5])


def test_the_first_request_stays_and_order_is_kept() -> None:
    kept = ramped(REQUESTS, 1000.0, seed=2)
    assert kept[0] is REQUESTS[0]
    assert list(kept) == sorted(kept, key=lambda each: each.arrival_seconds)
