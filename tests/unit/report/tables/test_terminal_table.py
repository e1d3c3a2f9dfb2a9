"""Tables in a narrow terminal: names and values stay readable, and no line is too long."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from inference_blueprints.report.tables import TextTable, print_rows
from inference_blueprints.spec.source import describe, shipped

JOB = "batch_0198b6f2c1e84d7e9b0a1c2d3e4f5a6b"
JOBS = TextTable(
    "",
    ("job", "queue", "state"),
    ("requests", "cost, USD"),
    ((JOB, "nightly", "in_progress", "5/9", "0.25"),),
)
SENTENCE = "Two workers that a router chooses between by the prompts that each of them has computed."


def printed(content: TextTable, width: int) -> list[str]:
    stream = io.StringIO()
    print_rows(content, Console(file=stream, width=width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_columns_where_they_fit() -> None:
    heading, _, row = printed(JOBS, 120)
    assert heading.split() == ["job", "queue", "state", "requests", "cost,", "USD"]
    assert row.split() == [JOB, "nightly", "in_progress", "5/9", "0.25"]


@pytest.mark.parametrize("width", [60, 78])
def test_an_identifier_is_never_folded(width: int) -> None:
    name, *lines = printed(JOBS, width)
    assert name == JOB
    assert [line.split()[-1] for line in lines] == ["nightly", "in_progress", "5/9", "0.25"]


def test_a_sentence_in_a_block_wraps_at_words_on_the_left() -> None:
    lines = printed(TextTable("", ("name", "description"), (), (("a-blueprint", SENTENCE),)), 50)
    assert lines[0] == "a-blueprint"
    assert lines[1].startswith("  description  Two workers that")
    assert lines[2].startswith("               ")
    assert " ".join(" ".join(lines[1:]).split()).endswith(SENTENCE)


@pytest.mark.parametrize("width", [40, 50, 60])
def test_a_block_shows_all_of_a_long_figure(width: int) -> None:
    """Bug: a column as wide as the figure pushed all figures of the block beyond the right edge."""
    key = "neuron/5b159d0cf8aeed84b4b8c05f94add9a6"
    figures = ("published time, min", "cost of the node, USD", "kept in S3 below")
    content = TextTable("", ("deployment",), figures, (("llama/main", "15 to 20", "0.49", key),))
    lines = printed(content, width)
    assert max(map(len, lines)) <= width
    values = [line.split()[-1] for line in lines]
    assert "0.49" in values
    assert key in "".join(values), "a figure that is wider than its place goes on in the next line"


@pytest.mark.parametrize("width", [60, 120])
def test_the_list_of_blueprints_cuts_no_sentence(width: int) -> None:
    rows = tuple((name, describe(path)) for name, path in shipped().items())
    lines = printed(TextTable("", ("blueprint", "description"), (), rows), width)
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for _, description in rows:
        assert description.endswith(".")
        assert description.split()[-1] in words
