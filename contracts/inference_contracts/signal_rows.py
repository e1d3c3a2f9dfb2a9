"""The history of signals: one object per part of a job, whose rows Athena reads as a table.

An object is `signals/name=<signal>/date=<day>/<job>-<part>.jsonl.gz` in its own bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

#: Prefix of all objects.
HISTORY_PREFIX: Final = "signals/"
#: Partitions of the table, in the order in which they are part of a key.
PARTITIONS: Final = ("name", "date")
#: Columns of a row and their types in Athena.
COLUMNS: Final[Mapping[str, str]] = {
    "key": "string",
    "value": "string",
    "version": "bigint",
    "model": "string",
    "prompt_hash": "string",
    "time": "bigint",
    "expires": "bigint",
    "job": "string",
}


def partition_prefix(name: str, date: str) -> str:
    """Return the prefix of the objects of one signal and one day, with a slash at its end."""
    values = zip(PARTITIONS, (name, date), strict=True)
    return HISTORY_PREFIX + "".join(f"{partition}={value}/" for partition, value in values)


def history_key(signal: str, version_milliseconds: int, job: str, part: str) -> str:
    """Return the key of the rows of a part; the day is the day of the version, in UTC."""
    day = datetime.fromtimestamp(version_milliseconds / 1000, UTC).date().isoformat()
    return f"{partition_prefix(signal, day)}{job}-{part}.jsonl.gz"
