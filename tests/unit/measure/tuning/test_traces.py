"""Traces of a user's own are read as they are, and what is wrong with them is said by line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from inference_blueprints.measure.tuning.replayed_workload import busiest, recorded_workload
from inference_blueprints.measure.tuning.traces import BLOCK_TOKENS, read_trace
from inference_contracts.errors import BlueprintError, UserError


def mooncake(
    timestamp: float | str = 0,
    input_length: float = 600,
    output_length: int | None = 10,
    hash_ids: Sequence[int | str] = (1, 2),
) -> str:
    record = {
        "timestamp": timestamp,
        "input_length": input_length,
        "output_length": output_length,
        "hash_ids": list(hash_ids),
    }
    return json.dumps({key: value for key, value in record.items() if value is not None})


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., Path]:
    def write(*lines: str, name: str = "trace.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def test_mooncake_s_times_are_milliseconds_and_its_ids_are_blocks(trace: Callable[..., Path]) -> None:
    read = read_trace(trace(mooncake(5000), mooncake(7500, 1024, 20, (1, 3))))
    assert [request.arrival_seconds for request in read.requests] == [0.0, 2.5]
    assert read.requests[1].block_ids == (1, 3)
    assert (read.knows_prefixes, read.rounded) == (True, False)


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("timestamp,input,output", ["10,700,30", "12.5,100,5"]),
        ("Output,Timestamp,Input,user", ["30,10,700,a", "5,12.5,100,b"]),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens",
            ["2023-11-16 18:17:03.9799600,700,30", "2023-11-16 18:17:06.4799600,100,5"],
        ),
    ],
    ids=["seconds", "any order", "dates"],
)
def test_csv_has_three_columns(trace: Callable[..., Path], header: str, rows: list[str]) -> None:
    read = read_trace(trace(header, *rows, name="trace.csv"))
    first, second = read.requests
    assert (first.input_tokens, first.output_tokens) == (700, 30)
    assert (second.input_tokens, second.output_tokens) == (100, 5)
    assert second.arrival_seconds == pytest.approx(2.5)
    assert not set(first.block_ids) & set(second.block_ids), "nothing is known to be shared"
    assert len(first.block_ids) == 2
    assert read.knows_prefixes is False


def test_a_trace_may_be_compressed_and_out_of_order(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(gzip.compress(f"{mooncake(9000)}\n{mooncake(1000)}\n".encode()))
    assert [request.arrival_seconds for request in read_trace(path).requests] == [0.0, 8.0]


def test_rounded_times_are_spread_up_to_the_next(trace: Callable[..., Path]) -> None:
    read = read_trace(trace(*[mooncake(time) for time in (0, 0, 0, 0, 2000, 2000)]))
    assert read.rounded
    assert [request.arrival_seconds for request in read.requests] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "timestamp, input_length, output_length, hash_ids missing"),
        (mooncake(hash_ids=()), "got 0 hash_ids, 600 tokens need 2, one per 512 tokens"),
        (mooncake(output_length=None), "output_length missing"),
        (mooncake(timestamp="soon"), "got timestamp 'soon'"),
        (mooncake(timestamp=-1), "got timestamp -1"),
        (
            mooncake(input_length=0),
            "got input_length 0, expected a whole number of tokens from 1 to 10,000,000",
        ),
        (mooncake(input_length=600.5), "got input_length 600.5"),
        (mooncake(output_length=True), "got output_length True"),
        (mooncake(hash_ids=("a", "b")), "got invalid hash_ids, expected a list of whole numbers"),
    ],
)
def test_a_wrong_line_is_named(trace: Callable[..., Path], line: str, message: str) -> None:
    with pytest.raises(BlueprintError) as raised:
        read_trace(trace(mooncake(), line, mooncake(1000)))
    [problem] = raised.value.problems
    assert problem.line == 2
    assert message in problem.message


def test_all_wrong_lines_are_named_up_to_twenty(trace: Callable[..., Path]) -> None:
    with pytest.raises(BlueprintError) as raised:
        read_trace(trace("timestamp,input,output", *["0,x,1"] * 30, name="trace.csv"))
    problems = raised.value.problems
    assert [problem.line for problem in problems] == list(range(2, 23))
    assert problems[-1].message == "10 more lines have errors"


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("trace.txt", ["x"], "allowed are .jsonl"),
        ("trace.csv", ["time,input,output", "0,1,1"], "timestamp missing"),
        ("trace.csv", ["timestamp,input,output"], "has no requests"),
        ("trace.csv", ["timestamp,input,output", "5,1,1", "5,2,2"], "all requests have the same time"),
        ("trace.csv.gz", ["timestamp,input,output"], "cannot be read"),
    ],
    ids=["kind", "column", "empty", "one time", "not compressed"],
)
def test_a_file_that_is_no_trace_is_an_error(
    trace: Callable[..., Path], name: str, lines: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_trace(trace(*lines, name=name))


def test_the_busiest_requests_in_a_row_are_replayed(trace: Callable[..., Path]) -> None:
    slow, fast = [10.0 * number for number in range(1500)], [15_000 + 0.1 * number for number in range(2000)]
    rows = [f"{time},10,1" for time in (*slow, *fast)]
    requests = busiest(read_trace(trace("timestamp,input,output", *rows, name="trace.csv")).requests)
    assert len(requests) == 2000
    assert requests[0].arrival_seconds == 0.0
    assert requests[-1].arrival_seconds == pytest.approx(199.9)


def test_the_means_of_a_trace_are_its_own(trace: Callable[..., Path]) -> None:
    lines = [mooncake(0), mooncake(1000, 1024, 30, (1, 3)), mooncake(2000, 1024, 20, (1, 3))]
    means = recorded_workload(read_trace(trace(*lines)).requests, BLOCK_TOKENS).means
    assert means.output_tokens == 20
    assert means.input_tokens == round((600 + 1024 + 1024) / 3)
    assert means.peak_requests_per_second == pytest.approx(1.0)
    assert means.shared_prefix_ratio == pytest.approx((512 + 1023) / 2648), "a prompt always ends on its own"
