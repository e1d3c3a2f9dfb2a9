"""What a worker carries, on a profile whose answers can be told by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy
import pytest
from numpy.typing import NDArray

from inference_blueprints.serving.estimates.request_estimates import held_tokens
from inference_blueprints.serving.estimates.request_lengths import Lengths
from inference_blueprints.serving.performance import (
    Limits,
    RoleCapacity,
    at_rate,
    best_within,
    full_requests_per_second,
    operation,
    prefill_ms,
    uncovered,
)
from inference_blueprints.spec.types import Objectives, Workload
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
    found = operation(_PROFILE, _workload(shared), at_once, step_tokens=2048)
    assert found.requests_per_second == pytest.approx(at_once * 1000 / milliseconds)
    assert found.time_per_output_token_ms == pytest.approx(milliseconds / 200)


def test_the_fewest_requests_at_once_that_complete_the_rate() -> None:
    # 1 at once: 0.437/s; 2 at once: 12 ms a step, 2,000 / 2,580 = 0.775/s.
    now, full = at_rate(_PROFILE, _workload(), 0.5, 32, step_tokens=2048)
    assert (now.concurrent_requests, full.concurrent_requests) == (2, 32)


def test_more_than_a_worker_carries() -> None:
    now, full = at_rate(_PROFILE, _workload(), 1000.0, 32, step_tokens=2048)
    assert now == full
    # 32,000 tokens: 42 ms a step; 32,000 / (8,400 + 2,880) = 2.837/s.
    assert full.requests_per_second == pytest.approx(2.837, abs=1e-3)


def test_beyond_the_end_of_a_table_nothing_is_known() -> None:
    """Bug: a prompt of twice the table took twice its last value, where attention makes it four times."""
    long = Workload(input_tokens=20_000, output_tokens=200, peak_requests_per_second=1.0)
    with pytest.raises(ValueError, match="the table ends at 10000, got 20000"):
        prefill_ms(_PROFILE, long)
    with pytest.raises(ValueError, match="the table ends at 100000, got 101000"):
        operation(_PROFILE, _workload(), 101, step_tokens=2048)
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
    _, full = at_rate(_PROFILE, _workload(), 1000.0, 256, step_tokens=2048)
    assert full.concurrent_requests == 100
    assert (
        best_within(_PROFILE, _workload(), Limits(1e9, math.inf), 256, step_tokens=2048).concurrent_requests
        == 100
    )
    # Of contexts of 10,000 tokens, the largest step was not measured: 1,000 lies between both columns.
    gap = replace(
        _PROFILE,
        decode_active_kv_tokens=(1_000.0, 50_000.0, 100_000.0),
        decode_itl=((11.0, 11.0), (60.0, 60.0), (110.0, None)),
    )
    assert (gap.max_active_kv_tokens(100), gap.max_active_kv_tokens(1000)) == (100_000, 50_000)
    assert at_rate(gap, _workload(), 1000.0, 256, step_tokens=2048)[1].concurrent_requests == 50
    with pytest.raises(ValueError, match="nothing was measured"):
        operation(gap, _workload(), 51, step_tokens=2048)


Drawn = NDArray[numpy.float64]

# Lengths, told with twenty thousand drawn ones.


def _drawn(mean: float, longest: float) -> Drawn:
    """Return lengths of the density exp(-k x) on 0 to the longest, whose k is found by their mean alone."""
    at = (numpy.arange(20_000) + 0.5) / 20_000

    def lengths(k: float) -> Drawn:
        return numpy.asarray(-numpy.log1p(at * numpy.expm1(-k)) / k * longest)

    low, high = -60.0, 60.01
    while high - low > 1e-9:
        k = (low + high) / 2
        low, high = (k, high) if lengths(k).mean() > mean else (low, k)
    return lengths(low)


@pytest.mark.parametrize(("mean", "longest"), [(1000, 4000), (3500, 4000), (2000, 4001), (300, 9000)])
def test_lengths_have_their_mean_and_their_longest(mean: int, longest: int) -> None:
    """Red if a formula of the lengths, or that of the mirrored ones, is wrong."""
    drawn, lengths = _drawn(mean, longest), Lengths(mean, longest)
    for tokens in (longest / 10, longest / 2, longest):
        expected = numpy.minimum(drawn, tokens).mean()
        assert lengths.at_most(tokens) == pytest.approx(expected, rel=2e-3)
    for power in (1, 2, 3):
        expected = (drawn**power).mean()
        assert lengths.moment(power) == pytest.approx(expected, rel=5e-3)


#: Prefill: 10 ms up to 1,000 tokens, then 0.01 ms a token up to 4,000 and 0.03 ms a token up to 10,000.
_BENT = replace(
    _PROFILE,
    prefill_isl=(1.0, 1_000.0, 4_000.0, 10_000.0),
    prefill_ttft_ms=(10.0, 10.0, 40.0, 220.0),
)


def _spread(mean: int, longest: int | None, shared: float = 0.0) -> Workload:
    return Workload(
        input_tokens=mean,
        output_tokens=20,
        longest_input_tokens=longest,
        shared_prefix_ratio=shared,
        peak_requests_per_second=1.0,
    )


def _bent_ms(tokens: float) -> float:
    return max(10.0, 0.01 * tokens, 40.0 + 0.03 * (tokens - 4_000.0))


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_prefill_is_the_mean_over_all_lengths(shared: float) -> None:
    """Red if a prompt of the mean length stands for all: long ones take longer than in proportion."""
    drawn = [_bent_ms(each * (1 - shared)) for each in _drawn(3_000, 9_000)]
    found = prefill_ms(_BENT, _spread(3_000, 9_000, shared))
    assert found == pytest.approx(math.fsum(drawn) / len(drawn), rel=2e-3)
    assert found > 1.15 * _bent_ms(3_000 * (1 - shared))
    assert prefill_ms(_BENT, _spread(3_000, None, shared)) == pytest.approx(_bent_ms(3_000 * (1 - shared)))


def test_prefill_of_several_ways_in_is_weighted_by_their_rates() -> None:
    """Red if a prompt of the mean length of all ways in stands for them: 2,375 tokens take 23.75 ms."""
    often = {"peak_requests_per_second": 3.0}
    ways = (_spread(500, None).model_copy(update=often), _spread(8_000, None))
    together = _spread(2_375, None).model_copy(update={"parts": ways})
    # Three of 10 ms and one of 160 ms.
    assert prefill_ms(_BENT, together) == pytest.approx(47.5)


def test_few_tokens_may_lie_beyond_the_end_of_a_profile() -> None:
    """Red if a long tail beyond the end counts as known, or if the longest prompt alone makes all unknown."""
    assert not uncovered(_BENT, _spread(3_000, 12_000), "prefill")
    assert "of all tokens of prompts are beyond it" in uncovered(_BENT, _spread(6_000, 20_000), "prefill")
    assert not uncovered(_BENT, _spread(6_000, 20_000), "decode")
    assert not uncovered(_BENT, _spread(10_000, None), "prefill")


@pytest.mark.parametrize(
    ("at_once", "output_tokens", "step_tokens", "milliseconds"),
    [
        # One after the other: a step of 4,000 tokens has room for eight prompts of 500, but eight answers of
        # 800 tokens bring 0.01 prompts a step.
        (8, 800, 4_000, 8 * 10.0),
        # An answer of one token brings eight prompts a step: 4,000 tokens take 40 ms, and not 80.
        (8, 1, 4_000, 40.0),
        # A step of 1,000 tokens takes two of them, in 10 ms.
        (8, 1, 1_000, 40.0),
        # 0.4 prompts a step in the mean: 0.4 / (1 - exp(-0.4)) = 1.2133 in those that have some: 607 tokens
        # in 10 ms, 8.24 ms for each.
        (8, 20, 4_000, 8 * 10.0 / 1.2133),
    ],
)
def test_short_prompts_share_a_step(
    at_once: int, output_tokens: int, step_tokens: int, milliseconds: float
) -> None:
    """Red if each of eight prompts counts with its time alone."""
    short = _spread(500, None).model_copy(update={"output_tokens": output_tokens})
    found = operation(_BENT, short, at_once, step_tokens=step_tokens)
    steps = output_tokens * (10.0 + at_once * (500 + output_tokens / 2) / 1000)
    assert found.request_ms == pytest.approx(steps + milliseconds, rel=2e-3)


def test_long_prompts_gain_nothing_in_a_step() -> None:
    """Red if prompts that take longer together than one after the other count as slower for it."""
    long = _spread(3_000, None).model_copy(update={"output_tokens": 1})
    # Two of 3,000 tokens would take 100 ms by the profile's prompt of 6,000 tokens: alone, they take 60.
    assert operation(_BENT, long, 2, step_tokens=8_000).request_ms == pytest.approx(60 + 16.001, rel=1e-3)


def test_an_answer_of_one_token_has_no_time_between_tokens() -> None:
    """Red if the whole request counts as the time of a token that never comes."""
    one = _spread(500, None).model_copy(update={"output_tokens": 1})
    assert operation(_BENT, one, 1, step_tokens=2_048).time_per_output_token_ms == 0.0


# What running requests hold.


def test_a_cache_holds_as_many_requests_as_stay_within_it() -> None:
    """Red if the mean decides: at half of all moments, requests would hold more than the cache has."""
    way = Workload(
        input_tokens=3_000,
        output_tokens=500,
        longest_input_tokens=12_000,
        longest_output_tokens=2_000,
        peak_requests_per_second=1.0,
    )
    held = held_tokens([way], Objectives())
    prompts, answers = _drawn(3_000, 12_000), _drawn(500, 2_000)
    # A second for the first token, 50 ms for each other.
    seconds = 0.95 + 0.05 * answers
    mean_answer = (answers * seconds).sum() / seconds.sum()
    variance = prompts.var() + ((answers - mean_answer) ** 2 * seconds).sum() / seconds.sum()
    assert held.mean == pytest.approx(prompts.mean() + mean_answer, rel=5e-3)
    assert held.variance == pytest.approx(variance, rel=1e-2)
    fitting = held.fitting(200_000)
    assert fitting * held.mean + 2.33 * math.sqrt(fitting * held.variance) == pytest.approx(200_000)
    assert held.needed(fitting) == pytest.approx(200_000)
    assert fitting < 0.85 * 200_000 / held.mean


def test_requests_of_the_mean_length_fill_the_cache_as_before() -> None:
    """Red if an old file gets another number of sequences."""
    held = held_tokens([_workload(0.5)], Objectives())
    assert (held.mean, held.variance, held.fitting(13_000)) == (650.0, 0.0, 20.0)
