"""Adds up the usage records of a day in S3, each once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from inference_contracts.door_ledger import Windows
from inference_contracts.door_names import USAGE_DAY, USAGE_PREFIX
from inference_contracts.reconciliation_names import MOST_BYTES

#: How a file of gzip begins (RFC 1952, 2.3.1).
_GZIP: Final = b"\x1f\x8b"
#: Records lie below the day of their arrival in UTC. Firehose tries for 24 hours to deliver one (Amazon Data
#: Firehose Developer Guide, "Data delivery failure handling").
_LATE_DAYS: Final = 2


class TooManyRecordsError(Exception):
    """A run cannot read all records of the day."""


@dataclass(frozen=True, slots=True)
class RecordedDay:
    """What the usage records of a day say."""

    nano: Mapping[str, int]
    """Nano-dollars by team."""
    records: int
    copies: int
    unreadable: int
    """`records`, `copies`, `unreadable`: Requests, records that were delivered again, and lines
    that are no records."""


def read_records(s3: Any, bucket: str, windows: Windows) -> RecordedDay:
    """Add up the records that the ledger has charged to a day.

    s3: Client of S3.
    windows: The day.
    Raises TooManyRecordsError.
    """
    objects = [each for day in _days(windows) for each in _objects(s3, bucket, day)]
    size = sum(each["Size"] for each in objects)
    if size > MOST_BYTES:
        raise TooManyRecordsError(
            f"s3://{bucket}/{USAGE_PREFIX}: the records have {size} compressed bytes, and a run reads at "
            f"most {MOST_BYTES}; compare the sums of docs/front-door-usage.md with Athena"
        )
    nano: Counter[str] = Counter()
    seen: set[int] = set()
    copies = unreadable = 0
    for each in objects:
        content = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        for line in (gzip.decompress(content) if content.startswith(_GZIP) else content).splitlines():
            record = _record(line)
            if record is None:
                unreadable += 1
                continue
            team, day, cost, reservation = record
            if day != windows.day:
                continue
            # 64 bits of 10 million texts: two are alike once in 370,000 days. Texts would take a GiB.
            if hash(reservation) in seen:
                copies += 1
                continue
            seen.add(hash(reservation))
            nano[team] += cost
    return RecordedDay(dict(nano), len(seen), copies, unreadable)


def _days(windows: Windows) -> Iterator[date]:
    day = datetime.fromtimestamp(windows.day, UTC).date()
    last = datetime.fromtimestamp(windows.day_end, UTC).date() + timedelta(days=_LATE_DAYS)
    while day <= last:
        yield day
        day += timedelta(days=1)


def _objects(s3: Any, bucket: str, day: date) -> Iterator[dict[str, Any]]:
    prefix = f"{USAGE_PREFIX}{USAGE_DAY}={day.isoformat()}/"
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from page.get("Contents", ())


def _record(line: bytes) -> tuple[str, int, int, str] | None:
    """Return team, day, cost and reservation of a record. None if the line is no record."""
    try:
        values = json.loads(line)
        found = (values["team"], values["day"], values["cost_nano"], values["reservation"])
    except (ValueError, TypeError, KeyError):
        return None
    kinds = (str, int, int, str)
    return found if all(isinstance(each, kind) for each, kind in zip(found, kinds, strict=True)) else None
