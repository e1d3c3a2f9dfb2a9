"""Scaling keeps what a trace says about sharing and order, and reaches the workload's rate and lengths."""

import bisect
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import (
    COMMON_PREFIX,
    ReplayError,
    Trace,
    TraceRequest,
    scale,
    shipped_trace,
)
from inference_blueprints.spec.types import Workload

BLOCK = 512


def trace_of(*requests: TraceRequest) -> Trace:
    return Trace("test", "here", "none", "all", BLOCK, 3.0, tuple(requests))


def workload(**fields: Any) -> Workload:
    defaults: dict[str, Any] = {"input_tokens": 3000, "output_tokens": 200, "peak_requests_per_second": 2.0}
    return Workload(**(defaults | fields))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Conversations that branch: each prompt continues an earlier one or starts anew, as prefix ids do."""
    count = draw(st.integers(1, 30))
    timestamps = sorted(draw(st.lists(st.integers(0, 60_000), min_size=count, max_size=count)))
    next_id = 0
    histories: list[tuple[int, ...]] = [()]
    requests = []
    for timestamp in timestamps:
        earlier = draw(st.sampled_from(histories))
        start = earlier[: draw(st.integers(0, len(earlier)))]
        added = draw(st.integers(1, 6))
        ids = start + tuple(range(next_id, next_id + added))
        next_id += added
        histories.append(ids[:-1])  # the last block is shorter than the others and nobody's prefix
        length = BLOCK * (len(ids) - 1) + draw(st.integers(1, BLOCK))
        requests.append(TraceRequest(timestamp / 1000, length, draw(st.integers(1, 2000)), ids))
    return trace_of(*requests)


workloads = st.builds(
    workload,
    input_tokens=st.integers(1, 20_000),
    output_tokens=st.integers(1, 2_000),
    shared_prefix_ratio=st.sampled_from([0.0, 0.0, 0.5, 0.95]),
    peak_requests_per_second=st.floats(0.01, 100.0),
)


def busiest(arrivals: list[float], window: float) -> int:
    """Most arrivals in any half-open window; the tolerance is for a request on its very end."""
    return max(
        bisect.bisect_left(arrivals, start + window * (1 - 1e-9)) - position
        for position, start in enumerate(arrivals)
    )


def words(tokens: int, seed: int) -> str:
    return "".join(f" {seed}-{position}" for position in range(tokens))


@settings(deadline=None)
@given(traces(), workloads, st.integers(64, 40_000), st.integers(0, 20))
def test_nothing_is_empty_or_beyond_the_context(
    trace: Trace, load: Workload, context: int, template: int
) -> None:
    for request in scale(trace, load, context, seconds=60.0, template_tokens=template).requests:
        assert request.output_tokens >= 1
        assert request.input_tokens >= template + 1
        assert request.input_tokens + request.output_tokens <= context
        assert sum(block.tokens for block in request.blocks) == request.input_tokens - template
        assert all(block.tokens >= 1 for block in request.blocks)


@settings(deadline=None)
@given(traces(), workloads, st.integers(64, 40_000))
def test_means_are_the_workloads_or_nobody_has_room_left(trace: Trace, load: Workload, context: int) -> None:
    scaled = scale(trace, load, context, seconds=60.0)
    everyone_full = all(
        request.input_tokens + request.output_tokens == context for request in scaled.requests
    )
    assert everyone_full or scaled.mean_input_tokens == pytest.approx(load.input_tokens, abs=1)
    if context > load.output_tokens + load.input_tokens:
        assert scaled.mean_output_tokens == pytest.approx(load.output_tokens, abs=1)


@settings(deadline=None)
@given(traces(), workloads, st.floats(1.0, 300.0))
def test_arrivals_keep_their_order_and_the_peak_is_the_stated_one(
    trace: Trace, load: Workload, seconds: float
) -> None:
    scaled = scale(trace, load, 40_000, seconds=seconds)
    arrivals = [request.arrival_seconds for request in scaled.requests]
    assert arrivals[0] == 0
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] < max(seconds, 1e-9)
    window, rate = scaled.peak_window_seconds, scaled.peak_requests_per_second
    assert rate == load.peak_requests_per_second
    assert busiest(arrivals, window) <= round(rate * window)


@settings(deadline=None)
@given(traces(), workloads, st.integers(64, 40_000))
def test_equal_ids_give_equal_text_and_different_ids_different_text(
    trace: Trace, load: Workload, context: int
) -> None:
    scaled = scale(trace, load, context, seconds=1e6)
    texts: dict[int, set[str]] = defaultdict(set)
    writer = PromptWriter(words, seed=7)
    for request in scaled.requests:
        prompt = writer.prompt(request).split()
        position = 0
        for block in request.blocks:
            texts[block.identity].add(" ".join(prompt[position : position + block.tokens]))
            position += block.tokens
    firsts = [next(iter(found)).split()[0] for found in texts.values()]
    assert len(set(firsts)) == len(firsts)
    for found in texts.values():
        longest = max(found, key=len)
        assert all(longest.startswith(text) for text in found)


@settings(deadline=None)
@given(traces(), st.integers(64, 40_000))
def test_requests_share_the_prefix_that_they_share_in_the_trace(trace: Trace, context: int) -> None:
    scaled = scale(trace, workload(input_tokens=20_000), context, seconds=1e6)
    recorded = trace.requests[: len(scaled.requests)]
    for first, first_recorded in zip(scaled.requests, recorded, strict=True):
        for second, second_recorded in zip(scaled.requests, recorded, strict=True):
            shared = [
                a for a, b in zip(first.blocks, second.blocks, strict=False) if a.identity == b.identity
            ]
            shared_ids = {block.identity for block in shared}
            common = set(first_recorded.block_ids) & set(second_recorded.block_ids)
            assert shared_ids <= common
            kept = {block.identity for block in first.blocks} & {block.identity for block in second.blocks}
            assert shared_ids == kept


def test_the_busiest_minute_of_the_replay_has_exactly_the_stated_rate() -> None:
    scaled = scale(shipped_trace(), workload(), 16_384, seconds=180.0)
    arrivals = [request.arrival_seconds for request in scaled.requests]
    assert scaled.peak_window_seconds == pytest.approx(60.0)
    assert busiest(arrivals, 60.0) == 120
    assert arrivals[-1] > 170.0


def test_a_short_replay_reaches_the_peak_in_its_own_length() -> None:
    scaled = scale(shipped_trace(), workload(), 16_384, seconds=10.0)
    assert len(scaled.requests) == 20
    assert scaled.peak_window_seconds == pytest.approx(10.0)


def test_an_excerpt_too_small_for_the_rate_is_replayed_whole_at_that_rate() -> None:
    scaled = scale(shipped_trace(), workload(peak_requests_per_second=1000.0), 16_384, seconds=60.0)
    arrivals = [request.arrival_seconds for request in scaled.requests]
    assert len(arrivals) == len(shipped_trace().requests)
    assert busiest(arrivals, scaled.peak_window_seconds) == round(1000.0 * scaled.peak_window_seconds)


def test_a_rate_below_one_request_a_replay_still_sends_one() -> None:
    assert (
        len(scale(shipped_trace(), workload(peak_requests_per_second=0.001), 8192, seconds=60.0).requests)
        == 1
    )


def test_what_is_clipped_is_counted_and_made_up_for() -> None:
    free = scale(shipped_trace(), workload(), 100_000, seconds=60.0)
    tight = scale(shipped_trace(), workload(), 6_000, seconds=60.0)
    assert free.factors.clipped_inputs == 0
    full = [r for r in tight.requests if r.input_tokens + r.output_tokens == 6_000]
    assert tight.factors.clipped_inputs == len(full) > 0
    assert tight.factors.input > free.factors.input
    assert tight.mean_input_tokens == pytest.approx(3000, abs=1)


def test_a_mean_beyond_the_context_is_missed_and_says_so() -> None:
    scaled = scale(shipped_trace(), workload(input_tokens=9000), 6_000, seconds=60.0)
    assert scaled.mean_input_tokens < 6_000
    assert scaled.factors.clipped_inputs > 0.9 * len(scaled.requests)


def test_blocks_shrink_like_the_prompts() -> None:
    factors = scale(shipped_trace(), workload(), 100_000, seconds=60.0).factors
    assert factors.block_tokens == pytest.approx(BLOCK * factors.input)
    recorded = shipped_trace().requests[:120]
    mean = sum(request.input_tokens for request in recorded) / 120
    assert factors.input == pytest.approx(3000 / mean, rel=1e-3)


@pytest.mark.parametrize("ratio", [0.3, 0.9])
def test_more_sharing_than_the_trace_has_comes_from_a_common_prefix(ratio: float) -> None:
    scaled = scale(shipped_trace(), workload(shared_prefix_ratio=ratio), 100_000, seconds=60.0)
    users = Counter(block.identity for request in scaled.requests for block in request.blocks)
    total = sum(request.input_tokens for request in scaled.requests)
    shared = sum(
        block.tokens for request in scaled.requests for block in request.blocks if users[block.identity] > 1
    )
    assert shared / total == pytest.approx(ratio, abs=0.02)
    assert {request.blocks[0].identity for request in scaled.requests} == {COMMON_PREFIX}


def test_less_sharing_than_the_trace_has_leaves_it_alone() -> None:
    assert scale(shipped_trace(), workload(), 8192, seconds=60.0).factors.common_prefix_tokens == 0


def test_a_context_without_room_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ReplayError, match="raise the model's context length"):
        scale(shipped_trace(), workload(), 8, seconds=60.0, template_tokens=7)


def test_requests_of_one_rounded_time_are_spread_over_the_step() -> None:
    at = [TraceRequest(seconds, 10, 10, (number,)) for number, seconds in enumerate((0, 0, 0, 2.999, 3.001))]
    assert trace_of(*at).arrivals_seconds() == [0.0, 1.0, 2.0, 3.0, 4.5]
