"""Whatever there is to join, S3 takes the parts, and every byte is in one of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from batch.objects import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MIN_PART_BYTES,
    plan_parts,
)

MIB, GIB = 2**20, 2**30
SIZES = st.one_of(
    st.sampled_from([0, 1, MIN_PART_BYTES - 1, MIN_PART_BYTES, MAX_PART_BYTES, MAX_PART_BYTES + 1]),
    st.integers(0, 20 * GIB),
)


def check(sizes: dict[str, int]) -> int:
    """Hold the parts of objects to what S3 takes, and return how many there are."""
    copied, read = plan_parts(sizes)
    bytes_of = Counter(dict.fromkeys(sizes, 0))
    for part in copied:
        assert MIN_PART_BYTES <= part.end - part.start <= MAX_PART_BYTES
        bytes_of[part.key] += part.end - part.start
    for small in read:
        for key in small.keys:
            bytes_of[key] += sizes[key]
    for small in read[:-1]:
        assert MIN_PART_BYTES <= sum(sizes[key] for key in small.keys) <= MAX_PART_BYTES
    assert bytes_of == sizes
    starts = {(part.key, part.start) for part in copied}
    assert len(starts) == len(copied)
    assert len(copied) + len(read) <= MAX_PARTS
    return len(copied) + len(read)


@given(st.lists(SIZES, max_size=30))
def test_any_objects_make_parts(sizes: list[int]) -> None:
    check({str(number): size for number, size in enumerate(sizes)})


def test_as_many_large_objects_as_there_are_parts_are_copied_one_by_one() -> None:
    assert check({str(number): MIN_PART_BYTES for number in range(MAX_PARTS)}) == MAX_PARTS


def test_one_more_is_read_with_others() -> None:
    sizes = {str(number): MIN_PART_BYTES for number in range(MAX_PARTS + 1)}
    assert check(sizes) < MAX_PARTS
    assert len(plan_parts(sizes)[0]) == MAX_PARTS - 1_000


def test_shards_of_two_turns_are_joined() -> None:
    check({str(number): 6 * MIB for number in range(2 * MAX_PARTS)})


def test_an_object_above_the_largest_part_is_copied_in_ranges() -> None:
    copied, read = plan_parts({"invalid": 12 * GIB, "small": 3})
    assert [(part.start, part.end) for part in copied] == [
        (0, 4 * GIB),
        (4 * GIB, 8 * GIB),
        (8 * GIB, 12 * GIB),
    ]
    assert [list(part.keys) for part in read] == [["small"]]
