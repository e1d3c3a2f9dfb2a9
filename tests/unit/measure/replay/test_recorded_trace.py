"""The shipped excerpt is what its description says."""

from inference_blueprints.measure.replay import scaled_trace as trace_module
from inference_blueprints.measure.replay.scaled_trace import shipped_trace


def test_the_excerpt_names_source_licence_and_cut() -> None:
    trace = shipped_trace()
    assert "Mooncake" in trace.source
    assert trace.licence == "Apache-2.0"
    assert f"{len(trace.requests)} of 12031 requests" in trace.cut


def test_the_excerpt_is_small() -> None:
    assert sum(path.stat().st_size for path in trace_module._DATA.iterdir()) < 100_000


def test_every_prompt_has_the_blocks_that_its_length_needs() -> None:
    trace = shipped_trace()
    for request in trace.requests:
        assert len(request.block_ids) == -(-request.input_tokens // trace.block_tokens)


def test_a_block_id_has_one_position() -> None:
    # Scaling relies on it: a block's length follows from its position alone.
    positions: dict[int, int] = {}
    for request in shipped_trace().requests:
        for position, identity in enumerate(request.block_ids):
            assert positions.setdefault(identity, position) == position


def test_a_repeated_trace_goes_on_with_new_prompts() -> None:
    trace = shipped_trace()
    twice = trace.repeated(2)
    first, second = twice.requests[: len(trace.requests)], twice.requests[len(trace.requests) :]
    assert first == trace.requests
    assert first[-1].timestamp_seconds < second[0].timestamp_seconds
    assert not {each for one in first for each in one.block_ids} & {
        each for one in second for each in one.block_ids
    }
    assert [len(each.block_ids) for each in second] == [len(each.block_ids) for each in first]
    assert twice.cut == f"{trace.cut}, 2 times in a row with new prompts"
    assert trace.repeated(1) is trace
