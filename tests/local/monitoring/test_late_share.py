"""A real Prometheus computes the share of late requests without rounding errors."""

from __future__ import annotations

import pytest

from inference_blueprints.render.monitoring.recording_rules import late_share
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate
from tests.local.monitoring.series import FRONTEND, TTFT, histogram

_MINUTES = 20
_LIMIT_SECONDS = 0.6


def _shares(seconds: float, per_minute: float) -> list[float]:
    """Return the share of each minute, of requests that all have this time to first token."""
    series = histogram(TTFT, FRONTEND, seconds=seconds, per_minute=per_minute, minutes=_MINUTES)
    share = late_share(TTFT, FRONTEND, "release", "5m", limit_seconds=_LIMIT_SECONDS)
    query = TimedQuery(expression=share, start_seconds=600.0, end_seconds=60.0 * _MINUTES)
    written = [f"{name} {values}" for name, values in series.items()]
    ((answer,),) = evaluate([TimedEvaluation(series=written, queries=[query])], lambda _: None)
    return [value for each in answer for _, value in each.values]


@pytest.mark.parametrize("per_minute", [5.0, 10.0, 27.0, 51.0, 53.0])
def test_without_a_late_request_it_is_zero(per_minute: float) -> None:
    shares = _shares(0.1, per_minute)
    assert len(shares) > 5
    assert set(shares) == {0.0}


def test_within_the_bucket_of_the_limit_it_is_the_part_above_it() -> None:
    # Between 0.47 s and 1 s.
    assert _shares(0.7, 60.0) == pytest.approx([(1.0 - 0.6) / (1.0 - 0.47)] * 11, abs=1e-6)
