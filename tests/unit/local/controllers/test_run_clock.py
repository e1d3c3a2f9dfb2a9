"""The faster clock of a controller."""

from __future__ import annotations

from inference_local.controllers.run_clock import RunClock, kubernetes_time

CLOCK = RunClock(1000.0, 4.0)


def test_it_is_right_at_the_beginning_and_faster_then() -> None:
    assert CLOCK.of(1000.0) == 1000.0
    assert CLOCK.of(1015.0) == 1060.0
    assert CLOCK.real(1060.0) == 1015.0
    assert CLOCK.run_seconds(1060.0) == 15.0


def test_durations_of_a_query_are_shorter() -> None:
    query = 'last_over_time(a{b="[1m]"}[60s]) + rate(c[1m]) + d[1h]'
    assert CLOCK.shortened(query).endswith("[15000ms]) + rate(c[15000ms]) + d[900000ms]")


def test_times_are_those_of_kubernetes() -> None:
    assert kubernetes_time(0.0) == "1970-01-01T00:00:00Z"
