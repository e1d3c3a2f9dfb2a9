"""Whatever a trace holds, it is read as it is or refused with words: generated files."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from inference_blueprints.measure.tuning.traces import BLOCK_TOKENS, UserTrace, read_trace
from inference_contracts.errors import BlueprintError, UserError

_START = datetime(2023, 11, 16, 18, 17, 3, tzinfo=UTC)
#: Ways to write a moment that lies so many microseconds after the start.
_TIMES = {
    "seconds": lambda micros: f"{micros / 1e6:.6f}",
    "epoch": lambda micros: f"{_START.timestamp() + micros / 1e6:.6f}",
    "ISO": lambda micros: _moment(micros).isoformat().replace("+00:00", "Z"),
    "another zone": lambda micros: _moment(micros).astimezone(timezone(timedelta(hours=2))).isoformat(),
    "Azure": lambda micros: f"{_moment(micros):%Y-%m-%d %H:%M:%S.%f}0",
}

#: Microseconds after the start, and the tokens of prompt and answer.
WrittenRequest = tuple[int, int, int]

requests = some.lists(
    some.tuples(some.integers(0, 10**9), some.integers(1, 200_000), some.integers(1, 5000)),
    min_size=2,
    max_size=30,
    unique_by=lambda request: request[0],
)


def _moment(micros: int) -> datetime:
    return _START + timedelta(microseconds=micros)


def _ordered(written: list[WrittenRequest]) -> list[tuple[float, int, int]]:
    first = min(micros for micros, _, _ in written)
    return [((micros - first) / 1e6, prompt, answer) for micros, prompt, answer in sorted(written)]


def _check(read: UserTrace, written: list[WrittenRequest]) -> None:
    lengths = [(request.input_tokens, request.output_tokens) for request in read.requests]
    assert lengths == [(prompt, answer) for _, prompt, answer in _ordered(written)]
    arrivals = [request.arrival_seconds for request in read.requests]
    assert arrivals == pytest.approx([arrival for arrival, _, _ in _ordered(written)], abs=2e-6)
    blocks = [len(request.block_ids) for request in read.requests]
    assert blocks == [-(-request.input_tokens // BLOCK_TOKENS) for request in read.requests]


@settings(max_examples=60, deadline=None)
@given(
    written=requests,
    way=some.sampled_from(sorted(_TIMES)),
    header=some.permutations(["TIMESTAMP", "Input", "output", "user"]),
    marks=some.tuples(some.sampled_from(["", "\ufeff"]), some.sampled_from(["\n", "\r\n"])),
)
def test_csv_in_any_order_of_lines_and_columns(
    written: list[WrittenRequest],
    way: str,
    header: list[str],
    marks: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    start, ending = marks
    rows = [
        {"TIMESTAMP": _TIMES[way](micros), "Input": prompt, "output": answer, "user": '"a, b"'}
        for micros, prompt, answer in written
    ]
    lines = [",".join(header), *(",".join(str(row[name]) for name in header) for row in rows), ""]
    path = tmp_path_factory.mktemp("csv") / "trace.csv"
    path.write_bytes((start + ending.join(lines)).encode())
    _check(read_trace(path), written)


@settings(max_examples=40, deadline=None)
@given(written=requests, ending=some.sampled_from(["\n", "\r\n", "\n\n"]), packed=some.booleans())
def test_mooncake_in_any_order_of_lines(
    *, written: list[WrittenRequest], ending: str, packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [
        json.dumps(
            {
                "timestamp": micros / 1000,
                "input_length": prompt,
                "output_length": answer,
                "hash_ids": list(range(-(-prompt // BLOCK_TOKENS))),
            }
        )
        for micros, prompt, answer in written
    ]
    content = ending.join(lines).encode()
    path = tmp_path_factory.mktemp("jsonl") / ("trace.jsonl.gz" if packed else "trace.jsonl")
    path.write_bytes(gzip.compress(content) if packed else content)
    _check(read_trace(path), written)


_VALUES = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(),
    some.floats(),
    some.text(max_size=8),
    some.lists(some.integers(), max_size=3),
    some.dictionaries(some.text(max_size=3), some.integers(), max_size=2),
)
_LINES = some.one_of(
    some.text(max_size=40),
    some.fixed_dictionaries(
        dict.fromkeys(("timestamp", "input_length", "output_length", "hash_ids"), _VALUES)
    ).map(json.dumps),
)


@settings(max_examples=200, deadline=None)
@given(lines=some.lists(_LINES, max_size=6), name=some.sampled_from(["trace.jsonl", "trace.csv"]))
def test_nonsense_ends_in_words(
    lines: list[str], name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("nonsense") / name
    header = ["timestamp,input,output"] if "csv" in name else []
    path.write_text("\n".join([*header, *lines]), encoding="utf-8")
    with suppress(UserError):  # any other error is one that a user would see as a traceback
        read_trace(path)


@settings(max_examples=60, deadline=None)
@given(content=some.binary(max_size=60), name=some.sampled_from(["trace.jsonl", "trace.csv.gz", "trace.csv"]))
def test_bytes_end_in_words(content: bytes, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("bytes") / name
    path.write_bytes(content)
    with pytest.raises(UserError):
        read_trace(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1e400,1,1", "which is not a time in seconds"),
        ("1700000000000,1,1", "which is not a time in seconds"),
        ("nan,1,1", "got timestamp 'nan'"),
        ("5,1e12,1", "got input '1e12', expected a whole number of tokens from 1 to 10,000,000"),
        ("5,1,2000000", "got output '2000000', expected a whole number of tokens from 1 to 1,000,000"),
        ("5,1", "got 2 columns, the first line has 3"),
        (f"5,{'9' * 5000},1", "expected a whole number of tokens"),
    ],
)
def test_an_absurd_figure_is_named_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"timestamp,input,output\n\n4,100,10\n{line}\n", encoding="utf-8")
    with pytest.raises(BlueprintError) as raised:
        read_trace(path)
    [problem] = raised.value.problems
    assert problem.line == 4
    assert message in problem.message
    assert len(problem.message) < 200


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "is not valid JSON"),
        (
            '{"timestamp": 0, "input_length": 1e400, "output_length": 1, "hash_ids": [1]}',
            "got input_length inf",
        ),
        (
            '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [99999999999999999999]}',
            "got invalid hash_ids, expected a list of whole numbers",
        ),
    ],
)
def test_json_beyond_all_bounds_is_named_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BlueprintError) as raised:
        read_trace(path)
    [problem] = raised.value.problems
    assert problem.line == 1
    assert message in problem.message


def test_dates_are_dates_in_json_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    record = {"input_length": 5, "output_length": 1, "hash_ids": [1]}
    moments = ("2024-05-10T00:00:00Z", "2024-05-10T00:00:02.5Z")
    path.write_text("\n".join(json.dumps(record | {"timestamp": each}) for each in moments), encoding="utf-8")
    assert [request.arrival_seconds for request in read_trace(path).requests] == [0.0, 2.5]


def test_times_of_two_kinds_are_no_stretch_of_time(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("timestamp,input,output\n5,1,1\n2024-05-10T00:00:00Z,1,1\n", encoding="utf-8")
    with pytest.raises(UserError, match="span 19,853 days"):
        read_trace(path)


def test_a_hundred_thousand_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    lines = (f"{number / 10},{number % 4000 + 1},{number % 300 + 1}" for number in range(100_000))
    path.write_text("\n".join(["timestamp,input,output", *lines]), encoding="utf-8")
    read = read_trace(path)
    assert len(read.requests) == 100_000
    assert read.requests[-1].arrival_seconds == pytest.approx(9999.9)
