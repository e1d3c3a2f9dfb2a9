"""What a worker carries, on a profile whose answers can be told by hand."""

from __future__ import annotations

import pytest

from inference_blueprints.serving.performance import at_rate, operation
from inference_blueprints.spec.types import Workload
from inference_catalog import LatencyProfile

#: Prefill: 0.1 ms a token. A step: 10 ms, and 1 ms more for each 1,000 tokens in the cache.
_PROFILE = LatencyProfile(
    model="acme/tiny",
    accelerator="l40s",
    tensor_parallel_size=1,
    system="",
    backend="",
    backend_version="",
    date="",
    source="",
    mean_error_percent=0.0,
    largest_error_percent=0.0,
    prefill_isl=(100.0, 10_000.0),
    prefill_ttft_ms=(10.0, 1_000.0),
    decode_active_kv_tokens=(1_000.0, 100_000.0),
    decode_context_length=(100.0, 10_000.0),
    decode_itl=((11.0, 11.0), (110.0, 110.0)),
)


def _workload(shared: float = 0.0) -> Workload:
    return Workload(
        input_tokens=900, output_tokens=200, shared_prefix_ratio=shared, peak_requests_per_second=1.0
    )


@pytest.mark.parametrize(
    ("at_once", "shared", "milliseconds"),
    [
        # 1 * (900 + 100) = 1,000 tokens: 11 ms a step; 200 * 11 + 1 * 90 = 2,290 ms.
        (1, 0.0, 2290.0),
        # 10,000 tokens: 20 ms a step; 200 * 20 + 10 * 90 = 4,900 ms.
        (10, 0.0, 4900.0),
        # Half of each prompt is cached: 45 ms of prefill; 4,000 + 450 = 4,450 ms.
        (10, 0.5, 4450.0),
    ],
)
def test_a_request_s_time(at_once: int, shared: float, milliseconds: float) -> None:
    found = operation(_PROFILE, _workload(shared), at_once)
    assert found.requests_per_second == pytest.approx(at_once * 1000 / milliseconds)
    assert found.time_per_output_token_ms == pytest.approx(milliseconds / 200)


def test_the_fewest_requests_at_once_that_complete_the_rate() -> None:
    # 1 at once: 0.437/s; 2 at once: 12 ms a step, 2,000 / 2,580 = 0.775/s.
    now, full = at_rate(_PROFILE, _workload(), 0.5, 32)
    assert (now.concurrent_requests, full.concurrent_requests) == (2, 32)


def test_more_than_a_worker_carries() -> None:
    now, full = at_rate(_PROFILE, _workload(), 1000.0, 32)
    assert now == full
    # 32,000 tokens: 42 ms a step; 32,000 / (8,400 + 2,880) = 2.837/s.
    assert full.requests_per_second == pytest.approx(2.837, abs=1e-3)
