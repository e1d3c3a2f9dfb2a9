"""Shards hold every line once, by length and shared beginning, none larger than it may be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.preparation import cutting
from batch.preparation.custom_ids import Repetition, digests, repetitions
from batch.preparation.cutting import NumberedLine, cut_shards
from batch.preparation.line_checks import CheckedLine

LINES = st.lists(
    st.builds(
        CheckedLine,
        custom_id=st.text(min_size=1, max_size=4),
        input_tokens=st.sampled_from([5, 2_048, 2_049, 16_384, 100_000]),
        output_tokens=st.integers(0, 500),
        beginning=st.sampled_from(["", "a", "b", "system \ud800"]),
        body=st.just({"x": "\ud800"}),
    ),
    max_size=40,
)


@given(LINES)
def test_every_line_is_in_one_shard(lines: list[CheckedLine]) -> None:
    numbered = [NumberedLine(number, line) for number, line in enumerate(lines, start=1)]
    shards = list(cut_shards(3, 0, numbered))
    found = sorted(line.line for shard in shards for line in shard.lines)
    assert found == [each.number for each in numbered]
    assert len({shard.name for shard in shards}) == len(shards)
    for shard in shards:
        assert [line.ordinal for line in shard.lines] == list(range(len(shard.lines)))
        assert shard.input_tokens == sum(line.tokens for line in shard.lines)
        written = [json.loads(line) for line in shard.to_jsonl().splitlines()]
        assert [each["line"] for each in written] == [line.line for line in shard.lines]


def test_long_prompts_do_not_stand_among_short_ones_and_beginnings_are_together() -> None:
    lines = [
        CheckedLine(str(number), 100_000 if number % 5 == 0 else 50, 10, f"system {number % 3}", body={})
        for number in range(1, 31)
    ]
    shards = list(cut_shards(0, 0, [NumberedLine(int(line.custom_id), line) for line in lines]))
    assert len(shards) == 2
    for shard in shards:
        assert len({line.tokens for line in shard.lines}) == 1
        beginnings = [int(line.custom_id) % 3 for line in shard.lines]
        assert beginnings == sorted(beginnings)


def test_a_shard_is_as_large_as_it_may_be_and_a_larger_line_is_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cutting, "MAX_SHARD_TOKENS", 100)
    monkeypatch.setattr(cutting, "MAX_SHARD_LINES", 4)
    sizes = [40, 60, 40, 500, 1, 1, 1, 1, 1]
    lines = [
        NumberedLine(number, CheckedLine(str(number), size, 0, "", body={}))
        for number, size in enumerate(sizes, start=1)
    ]
    shards = [[line.tokens for line in shard.lines] for shard in cut_shards(0, 0, lines)]
    assert shards == [[40, 60], [40], [500], [1, 1, 1, 1], [1]]


def test_a_custom_id_that_is_used_again_is_found_across_segments() -> None:
    segments = [[("a", 1), ("b", 2), ("a", 9)], [("c", 1)], [], [("b", 4), ("a", 5)]]
    pieces = [[each[:7], each[7:30], each[30:]] for each in map(digests, segments)]
    found = set(repetitions(pieces))
    assert found == {Repetition(0, 9, 0, 1), Repetition(3, 5, 0, 1), Repetition(3, 4, 0, 2)}


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8), max_size=5))
def test_as_many_are_found_as_there_are(segments: list[list[str]]) -> None:
    numbered = [[(each, line) for line, each in enumerate(ids, start=1)] for ids in segments]
    found = list(repetitions([[digests(ids)] for ids in numbered]))
    ids = [each for segment in segments for each in segment]
    assert len(found) == len(ids) - len(set(ids))


def test_digests_that_end_within_a_record_are_not_taken() -> None:
    with pytest.raises(ValueError, match="segment 0 end within a record"):
        list(repetitions([[digests([("a", 1)])[:-1]]]))
