"""Reads usage records of the front door from their bucket, and adds them up."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_contracts.door_configuration import NANO
from inference_contracts.door_names import USAGE_DAY, USAGE_PREFIX
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass
from inference_contracts.usage_record import UsageRecord

#: How a file of gzip begins (RFC 1952, 2.3.1). Firehose compresses as its stream says.
_GZIP: Final = b"\x1f\x8b"
#: Records are stored below the day of their arrival. Firehose tries for 24 hours to deliver one (Amazon Data
#: Firehose Developer Guide, "Data delivery failure handling"), and a request itself may take hours.
_LATE_DAYS: Final = 2
#: Objects are read at once, which is how S3 is fast.
_AT_ONCE: Final = 8
#: Compressed bytes that a command reads: some 5 million records. Their identifiers take half a GiB of memory.
MOST_BYTES: Final = 2**29
_FIELDS: Final = tuple(each.name for each in fields(UsageRecord))
_FIRST_ERROR: Final = 400

#: What rows may be told apart by, and how a record names it.
GROUPS: Final[dict[str, Callable[[UsageRecord], str]]] = {
    "team": lambda record: record.team,
    "project": lambda record: f"{record.team}/{record.project}" if record.project else f"{record.team}/-",
    "key": lambda record: record.key or "-",
    "model": lambda record: record.model,
    "user": lambda record: record.user or record.caller or record.key or "-",
}


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """A day or a month of the ledger."""

    start: datetime
    end: datetime
    """`start`, `end`: Its first moment, and that after it, in the time zone of the budgets."""

    @property
    def days(self) -> Iterator[date]:
        """The days in UTC below which its records may be."""
        day, last = self.start.astimezone(UTC).date(), self.end.astimezone(UTC).date()
        while day <= last + timedelta(days=_LATE_DAYS):
            yield day
            day += timedelta(days=1)


def month_window(month: str | None, zone: ZoneInfo, now: datetime) -> UsageWindow:
    """Return a month. Raises UserError if the text is none, or it has not begun.

    month: Such as ``2026-11``. None for the present one.
    """
    text = month or f"{now.astimezone(zone):%Y-%m}"
    try:
        begin = datetime.strptime(text, "%Y-%m").replace(tzinfo=zone)
    except ValueError as error:
        raise UserError(f"got --month {text}; allowed is a month such as 2026-11") from error
    following = (begin + timedelta(days=32)).replace(day=1)
    return _begun(UsageWindow(begin, following), f"--month {text}", now)


def day_window(day: str, zone: ZoneInfo, now: datetime) -> UsageWindow:
    """Return a day. Raises UserError as `month_window`.

    day: Such as ``2026-11-29``.
    """
    try:
        begin = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=zone)
    except ValueError as error:
        raise UserError(f"got --day {day}; allowed is a day such as 2026-11-29") from error
    return _begun(UsageWindow(begin, begin + timedelta(days=1)), f"--day {day}", now)


def _begun(window: UsageWindow, option: str, now: datetime) -> UsageWindow:
    if window.start > now:
        raise UserError(f"got {option}, which has not begun in the time zone {window.start.tzinfo}")
    return window


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What a team, project, key, model or user has used."""

    names: tuple[str, ...]
    """What it is, in the order of the groups."""
    requests: int
    failed: int
    """`requests`, `failed`: Requests, and those of them that were not answered or with an error."""
    cut: int
    """Answers that did not come to their end, and were charged up to there."""
    input_tokens: int
    output_tokens: int
    nano: int
    """`input_tokens`, `output_tokens`, `nano`: Tokens, and the cost in nano-dollars."""

    @property
    def usd(self) -> float:
        """The cost in US dollars."""
        return self.nano / NANO


def read_records(account: Account, bucket: str, days: Iterable[date]) -> Iterator[UsageRecord]:
    """Yield the records below some days, each once, although Firehose may deliver one twice.

    bucket: Name of the bucket.
    Raises UserError if there are too many, or AWS does not answer or refuses.
    """
    s3 = account.client("s3")
    with readable_errors():
        objects = [each for day in days for each in _objects(s3, bucket, day)]
    size = sum(each["Size"] for each in objects)
    if size > MOST_BYTES:
        raise UserError(
            f"the usage records have {size / 2**30:,.1f} GiB, and this command reads at most "
            f"{MOST_BYTES / 2**30:g}; ask for one day with --day, or query s3://{bucket}/{USAGE_PREFIX} with "
            "Athena"
        )
    seen: set[str] = set()
    with readable_errors(), ThreadPoolExecutor(_AT_ONCE) as threads:
        keys = iter([each["Key"] for each in objects])
        # A few at a time: `map` would read all of them at once into memory.
        while some := list(islice(keys, _AT_ONCE)):
            for key, content in zip(some, threads.map(partial(_content, s3, bucket), some), strict=True):
                for number, line in enumerate(content.splitlines(), 1):
                    record = _record(line, f"s3://{bucket}/{key}:{number}")
                    if record.reservation and record.reservation in seen:
                        continue
                    seen.add(record.reservation)
                    yield record


def add_up(records: Iterable[UsageRecord], by: Sequence[str]) -> list[UsageRow]:
    """Return what was used, the most expensive first.

    by: Names of `GROUPS`.
    """
    sums: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * 6)
    for record in records:
        row = sums[tuple(GROUPS[name](record) for name in by)]
        has_failed = not 0 < record.status < _FIRST_ERROR
        numbers = (1, has_failed, record.basis == "cut", record.input_tokens, record.output_tokens)
        for place, number in enumerate((*numbers, record.cost_nano)):
            row[place] += number
    rows = [UsageRow(names, *numbers) for names, numbers in sums.items()]
    return sorted(rows, key=lambda row: (-row.nano, row.names))


def of_month(records: Iterable[UsageRecord], window: UsageWindow) -> Iterator[UsageRecord]:
    """Yield the records that the ledger has charged to a month."""
    return (each for each in records if each.month == int(window.start.timestamp()))


def of_day(records: Iterable[UsageRecord], window: UsageWindow) -> Iterator[UsageRecord]:
    """Yield the records that the ledger has charged to a day."""
    return (each for each in records if each.day == int(window.start.timestamp()))


def of_time(records: Iterable[UsageRecord], start: datetime, end: datetime) -> Iterator[UsageRecord]:
    """Yield the records of requests that began in a time."""
    return (each for each in records if start <= datetime.fromisoformat(each.time) < end)


def _objects(s3: Any, bucket: str, day: date) -> Iterator[dict[str, Any]]:
    prefix = f"{USAGE_PREFIX}{USAGE_DAY}={day.isoformat()}/"
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from page.get("Contents", ())


def _content(s3: Any, bucket: str, key: str) -> bytes:
    content: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return gzip.decompress(content) if content.startswith(_GZIP) else content


def _record(line: bytes, place: str) -> UsageRecord:
    """Return a record, without what a newer release has added. Raises UserError if the line is none."""
    try:
        values = json.loads(line)
        return UsageRecord.from_values({name: values[name] for name in _FIELDS if name in values})
    except (ValueError, TypeError) as error:
        raise UserError(f"{place}: is no usage record: {error}") from error
