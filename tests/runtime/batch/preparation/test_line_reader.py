"""Every line once, wherever an object is cut, in memory that no line can fill."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from batch.preparation.line_reader import Line, lines_that_begin_within, read_lines

contents = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\n\n", b"x" * 40]), max_size=30).map(
    b"".join
)


def in_pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def expected(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@given(contents, st.integers(1, 20), st.lists(st.integers(1, 200), max_size=6))
def test_ranges_that_follow_one_another_give_each_line_once(
    content: bytes, piece: int, cuts: list[int]
) -> None:
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    found: list[Line] = []
    for start, end in itertools.pairwise(edges):
        stream = in_pieces(content[max(start - 1, 0) :], piece)
        found += lines_that_begin_within(stream, start=start, end=end, limit=1000)
    assert [line.content for line in found] == expected(content)
    for line in found:
        assert content[line.offset : line.offset + line.size] == line.content


@given(contents, st.integers(1, 20), st.integers(0, 50))
def test_a_line_above_the_limit_is_counted_and_not_kept(content: bytes, piece: int, limit: int) -> None:
    lines = list(read_lines(in_pieces(content, piece), first_offset=0, limit=limit))
    assert [line.size for line in lines] == [len(each) for each in expected(content)]
    assert [line.content for line in lines] == [
        each if len(each) <= limit else None for each in expected(content)
    ]


def test_a_line_of_a_hundred_megabytes_is_never_in_memory() -> None:
    def stream() -> Iterator[bytes]:
        yield b'{"a":1}\n'
        for _ in range(100):
            yield bytes(2**20)
        yield b'\n{"b":2}'

    tracemalloc.start()
    lines = list(read_lines(stream(), first_offset=0, limit=4 * 2**20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(line.size, line.content is None) for line in lines] == [
        (7, False),
        (100 * 2**20, True),
        (7, False),
    ]
    assert peak < 16 * 2**20


def test_a_range_within_a_line_reads_no_further_than_its_end() -> None:
    read = []

    def stream() -> Iterator[bytes]:
        for number in range(100):
            read.append(number)
            yield b"x" * 100

    assert list(lines_that_begin_within(stream(), start=1000, end=2000, limit=10)) == []
    assert len(read) < 13
