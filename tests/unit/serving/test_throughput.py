"""What a worker carries, on a profile whose answers can be told by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference_blueprints.serving.performance import (
    RoleCapacity,
    at_rate,
    best_within,
    full_requests_per_second,
    operation,
    prefill_ms,
    uncovered,
)
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
    measured_to=(),
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


def test_beyond_the_end_of_a_table_nothing_is_known() -> None:
    """Bug: a prompt of twice the table took twice its last value, where attention makes it four times."""
    long = Workload(input_tokens=20_000, output_tokens=200, peak_requests_per_second=1.0)
    with pytest.raises(ValueError, match="the table ends at 10000, got 20000"):
        prefill_ms(_PROFILE, long)
    with pytest.raises(ValueError, match="the table ends at 100000, got 101000"):
        operation(_PROFILE, _workload(), 101)
    assert "ends at 10,000 tokens of a prompt, and a mean prompt has 20,000" in uncovered(
        _PROFILE, long, "prefill"
    )
    assert "ends at contexts of 10,000 tokens, and a mean request has 20,100" in uncovered(
        _PROFILE, long, "decode"
    )
    # 15 % of the prompt are computed here, and the decode workers have it whole.
    shared = long.model_copy(update={"shared_prefix_ratio": 0.85})
    assert not uncovered(_PROFILE, shared, "prefill")
    assert uncovered(_PROFILE, shared, "aggregated")


def test_what_the_slowest_role_may_serve_beyond_its_profile_is_unknown() -> None:
    """Bug: a lower bound passed as the highest load, and a job that fits its deadline as late."""
    prefill = RoleCapacity(3.0, 5.0, 5.0, 1, 0.0)
    decode = RoleCapacity(3.0, 7.0, 7.0, 100, 20.0, is_at_least=True)
    assert full_requests_per_second([prefill, decode]) == 5.0
    assert full_requests_per_second([prefill, replace(decode, full_requests_per_second=4.0)]) is None
    assert full_requests_per_second([replace(prefill, full_requests_per_second=7.0), decode]) == 7.0


def test_a_worker_counts_with_no_more_requests_than_its_profile_reaches() -> None:
    """Bug: figures at full load followed a line beyond the last measured step."""
    _, full = at_rate(_PROFILE, _workload(), 1000.0, 256)
    assert full.concurrent_requests == 100
    assert best_within(_PROFILE, _workload(), 1e9, 256).concurrent_requests == 100
    # Of contexts of 10,000 tokens, the largest step was not measured: 1,000 lies between both columns.
    gap = replace(
        _PROFILE,
        decode_active_kv_tokens=(1_000.0, 50_000.0, 100_000.0),
        decode_itl=((11.0, 11.0), (60.0, 60.0), (110.0, None)),
    )
    assert (gap.max_active_kv_tokens(100), gap.max_active_kv_tokens(1000)) == (100_000, 50_000)
    assert at_rate(gap, _workload(), 1000.0, 256)[1].concurrent_requests == 50
    with pytest.raises(ValueError, match="nothing was measured"):
        operation(gap, _workload(), 51)
