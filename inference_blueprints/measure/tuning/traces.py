"""Reads a user's trace: Mooncake's JSON lines, or CSV with time, prompt length and answer length."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import reprlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from inference_blueprints.measure.simulation.offline_replay import RecordedRequest
from inference_contracts.errors import BlueprintError, Problem, UserError
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_DAY

#: Of Mooncake's traces (FAST25 release): tokens of a block that an entry of ``hash_ids`` stands for.
BLOCK_TOKENS = 512
_MS = 1000.0
#: As in the blueprint's `workload`: what is longer is no request, but a fault of the file.
_MAX_INPUT, _MAX_OUTPUT = 10_000_000, 1_000_000
#: Seconds since 1970 from which on a number is no time in seconds: the year 5138.
_LATEST = 1e11
#: A trace is of one stretch of time: what spans more mixes units, or holds a time that is wrong.
_MAX_DAYS = 366.0
_MAX_PROBLEMS = 20
_FEWEST_TIMES = 2
#: From so many requests at the same time on, times were rounded when they were written.
_ROUNDED = 2.0
#: Column of each figure, in lower case; then what the public traces of Azure and of BurstGPT call it.
_COLUMNS = {
    "timestamp": ("timestamp",),
    "input": ("input", "contexttokens", "request tokens"),
    "output": ("output", "generatedtokens", "response tokens"),
}
#: Azure writes seven decimals of a second; Python reads six.
_FURTHER_DECIMALS = re.compile(r"(\.\d{6})\d+")


@dataclass(frozen=True, slots=True)
class UserTrace:
    """A trace as it was read."""

    name: str
    requests: tuple[RecordedRequest, ...]
    """In the order of arrival, the first at 0."""
    knows_prefixes: bool
    """Whether it says which prompts begin alike."""
    rounded: bool
    """Whether its times were rounded; requests of one time are then spread evenly up to the next."""
    longest: int | None = None
    too_long: int = 0
    """`longest`, `too_long`: Tokens of prompt and answer together beyond which requests were left out, and
    how many were; None where none had to be."""

    def within(self, tokens: int) -> UserTrace:
        """Return the trace without requests that are longer than workers accept.

        tokens: Maximum tokens of prompt and answer together.
        Raises UserError if fewer than two times are left, of which no rate follows.
        """
        kept = tuple(each for each in self.requests if each.tokens <= tokens)
        if len({each.arrival_seconds for each in kept}) < _FEWEST_TIMES:
            raise UserError(
                f"{self.name}: {len(kept):,} of its {len(self.requests):,} requests fit the {tokens:,} "
                "tokens that workers accept according to the workload section; at least two at different "
                "times are needed; set the trace's lengths in the workload section"
            )
        return replace(self, requests=kept, longest=tokens, too_long=len(self.requests) - len(kept))


class _FaultError(ValueError):
    """Error of one line."""


def read_trace(path: Path) -> UserTrace:
    """Read a trace, compressed or not.

    path: ``.jsonl`` in Mooncake's form, or ``.csv`` with the columns timestamp, input, output; ``.gz`` behind
        either.
    Raises UserError if the file cannot be read, is of neither form, or spans no time. Raises BlueprintError
        if lines of it are wrong, with the number of each of the first 20.
    """
    kind = (path.suffixes[-2:-1] if path.suffix == ".gz" else [path.suffix]) or [""]
    readers: dict[str, Callable[[str, str], list[RecordedRequest]]] = {".jsonl": _json_lines, ".csv": _csv}
    if kind[0] not in readers:
        raise UserError(
            f"{path}: got a file name that ends with {path.suffix or 'nothing'!r}; allowed are .jsonl "
            "(Mooncake), .csv (timestamp,input,output), and compressed .jsonl.gz or .csv.gz"
        )
    requests = readers[kind[0]](_text(path), str(path))
    ordered = sorted(requests, key=lambda request: request.arrival_seconds)
    times = len({request.arrival_seconds for request in requests})
    if times == 1:
        raise UserError(f"{path}: all requests have the same time, so their rate is unknown; add their times")
    days = (ordered[-1].arrival_seconds - ordered[0].arrival_seconds) / SECONDS_PER_DAY
    if days > _MAX_DAYS:
        raise UserError(
            f"{path}: its times span {days:,.0f} days, at most {_MAX_DAYS:.0f} are allowed; numbers are "
            "milliseconds in .jsonl and seconds in .csv; a file must have only numbers or only dates"
        )
    rounded = len(requests) / times >= _ROUNDED
    return UserTrace(
        name=str(path),
        requests=tuple(_from_zero(ordered, spread=rounded)),
        knows_prefixes=kind[0] == ".jsonl",
        rounded=rounded,
    )


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8; save it as UTF-8") from error


def _json_lines(text: str, file: str) -> list[RecordedRequest]:
    """Read Mooncake's form; its times are in milliseconds."""
    lines = [(number, line) for number, line in enumerate(io.StringIO(text, newline=None), 1) if line.strip()]
    return _each(lines, _mooncake, file)


def _csv(text: str, file: str) -> list[RecordedRequest]:
    """Read CSV; its times are in seconds, or dates with a time."""
    rows = _rows(text, file)
    _, first = next(rows, (1, []))
    header = [name.strip().lower() for name in first]
    places = {
        figure: next((header.index(name) for name in names if name in header), None)
        for figure, names in _COLUMNS.items()
    }
    missing = [figure for figure, place in places.items() if place is None]
    if missing:
        got = f"got the columns {', '.join(header) or 'none'}, {' and '.join(missing)} missing"
        message = f"{got}; the first line must be `timestamp,input,output`: seconds or dates, and tokens"
        raise BlueprintError([Problem(file, 1, 1, "", message)])
    blocks = count()

    def request(row: Sequence[str]) -> RecordedRequest:
        cells = {
            figure: row[place] for figure, place in places.items() if place is not None and place < len(row)
        }
        if len(cells) < len(places):
            raise _FaultError(f"got {len(row)} columns, the first line has {len(header)}")
        tokens = _tokens("input", cells["input"], _MAX_INPUT)
        ids = tuple(next(blocks) for _ in range(-(-tokens // BLOCK_TOKENS)))
        output = _tokens("output", cells["output"], _MAX_OUTPUT)
        return RecordedRequest(_seconds(cells["timestamp"], 1.0), tokens, output, ids)

    return _each(list(rows), request, file)


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank with the number of its line."""
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        yield from ((rows.line_num, row) for row in rows if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise BlueprintError([Problem(file, rows.line_num, 1, "", f"is not valid CSV: {error}")]) from error


def _each(
    lines: Sequence[tuple[int, Any]], read: Callable[[Any], RecordedRequest], file: str
) -> list[RecordedRequest]:
    """Read every line, or raise with the first errors."""
    requests, problems = [], []
    for number, line in lines:
        try:
            requests.append(read(line))
        except _FaultError as fault:
            problems.append(Problem(file, number, 1, "", str(fault)))
    if len(problems) > _MAX_PROBLEMS:
        more = f"{len(problems) - _MAX_PROBLEMS} more lines have errors"
        problems = [*problems[:_MAX_PROBLEMS], Problem(file, problems[_MAX_PROBLEMS].line, 1, "", more)]
    if not problems and not requests:
        problems = [Problem(file, 0, 0, "", "has no requests; write one per line")]
    if problems:
        raise BlueprintError(problems)
    return requests


def _mooncake(line: str) -> RecordedRequest:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _FaultError(f"is not valid JSON: {error}") from error
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    missing = [name for name in names if not isinstance(record, dict) or name not in record]
    if missing:
        raise _FaultError(
            f"{', '.join(missing)} missing; each line must be an object with {', '.join(names)}"
        )
    tokens = _tokens("input_length", record["input_length"], _MAX_INPUT)
    ids = record["hash_ids"]
    if not isinstance(ids, list) or not all(map(_is_block_id, ids)):
        raise _FaultError("got invalid hash_ids, expected a list of whole numbers of at least 0")
    needed = -(-tokens // BLOCK_TOKENS)
    if len(ids) != needed:
        raise _FaultError(
            f"got {len(ids)} hash_ids, {tokens} tokens need {needed}, one per {BLOCK_TOKENS} tokens"
        )
    output = _tokens("output_length", record["output_length"], _MAX_OUTPUT)
    return RecordedRequest(_seconds(record["timestamp"], 1 / _MS), tokens, output, tuple(ids))


def _is_block_id(value: Any) -> bool:
    """Whether a value is a whole number that the replay takes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _tokens(name: str, value: Any, maximum: int) -> int:
    """Read a length."""
    tokens = _number(value)
    if tokens is None or not 1 <= tokens <= maximum or tokens != int(tokens):
        raise _FaultError(
            f"got {name} {_shown(value)}, expected a whole number of tokens from 1 to {maximum:,}"
        )
    return int(tokens)


def _seconds(value: Any, unit: float) -> float:
    """Read a time: a number of units of so many seconds, or a date with a time, from any fixed moment on."""
    number = _number(value)
    seconds = _date(value) if number is None else number * unit
    if seconds is None or not seconds >= 0:
        raise _FaultError(
            f"got timestamp {_shown(value)}, expected a number of at least 0, or a date with a time"
        )
    if seconds >= _LATEST:
        raise _FaultError(
            f"got timestamp {_shown(value)}, which is not a time in "
            f"{'seconds' if unit == 1 else 'milliseconds'}"
        )
    return seconds


def _date(value: Any) -> float | None:
    """Return the seconds from 1970 to a date; one without a zone is UTC's."""
    try:
        moment = datetime.fromisoformat(_FURTHER_DECIMALS.sub(r"\1", value.strip()))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (AttributeError, ValueError, OverflowError):
        return None


def _number(value: Any) -> float | None:
    """Return a value as a number; infinite, where it is beyond all."""
    try:
        return None if isinstance(value, bool) else float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return None


def _shown(value: Any) -> str:
    """Return a value as a message shows it, which is not without end."""
    return reprlib.repr(value)


def _from_zero(requests: Sequence[RecordedRequest], *, spread: bool) -> Iterator[RecordedRequest]:
    """Count times from the first request on, and spread those of one time evenly up to the next."""
    times = sorted({request.arrival_seconds for request in requests})
    gaps = {time: later - time for time, later in pairwise(times)}
    together: dict[float, list[RecordedRequest]] = {}
    for request in requests:
        together.setdefault(request.arrival_seconds, []).append(request)
    for time, alike in together.items():
        gap = gaps.get(time, 0.0) if spread else 0.0
        for place, request in enumerate(alike):
            arrival = time - times[0] + gap * place / len(alike)
            yield RecordedRequest(arrival, request.input_tokens, request.output_tokens, request.block_ids)
