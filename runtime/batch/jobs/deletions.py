"""Objects that must be deleted at a time: expired files, and the intermediate objects of ended jobs.

S3's lifecycle rules count whole days and do not know when a job ended. So the scheduler deletes these objects
itself, and the rules delete what it missed (https://docs.aws.amazon.com/AmazonS3/latest/userguide/
intro-lifecycle-rules.html). Each deletion is an item of the table of all records, in the index by state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from batch.jobs.record_table import Table
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import (
    EXPIRY_ATTRIBUTE,
    ID_ATTRIBUTE,
    ORDER_ATTRIBUTE,
    STATE_INDEX_KEY,
)
from inference_contracts.json_record import JsonRecord

#: Value of the index for deletions. No job has such a state.
_STATE: Final = "deletion"
#: Time between the end of a job and the deletion of its intermediate objects: workers that were about to
#: write something have stopped by then.
_AFTER_END_SECONDS: Final = 3600
# Until then the lifecycle rules have deleted the objects.
_KEPT_SECONDS: Final = 40 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Deletion(JsonRecord):
    """Objects of the batch bucket to delete."""

    id: str
    """Identifier of the file or the job."""
    due: int
    """When, in seconds since 1970."""
    prefixes: tuple[str, ...]
    """Prefixes of the objects. An object's key is a prefix too."""


class DeletionTable:
    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, deletion: Deletion) -> None:
        """Plan a deletion. It replaces an earlier one of the same file or job."""
        self._table.put(
            {
                ID_ATTRIBUTE: _identifier(deletion.id),
                "record": deletion.to_values(),
                STATE_INDEX_KEY: _STATE,
                ORDER_ATTRIBUTE: f"{deletion.due:012d}#{deletion.id}",
                EXPIRY_ATTRIBUTE: deletion.due + _KEPT_SECONDS,
            }
        )

    def due(self, now: float) -> Iterator[Deletion]:
        """Iterate over the deletions whose time has come, oldest first."""
        for values in self._table.in_state(_STATE, before=f"{int(now) + 1:012d}"):
            # The index lags behind the table: the file may have got a later time.
            current = self._table.get(_identifier(values["id"]))
            if current is not None and current["due"] <= now:
                yield Deletion.from_values(current)

    def forget(self, deletion: Deletion) -> None:
        self._table.delete(_identifier(deletion.id))


def intermediate_objects(job: str, *, ended_at: int) -> Deletion:
    """Return the deletion of what a job that has ended for good does not need any more."""
    prefix = JobKeys(job).prefix
    folders = ("segments", "shards", "chunks", "parts", "rest", "joined", "published")
    return Deletion(job, ended_at + _AFTER_END_SECONDS, tuple(f"{prefix}{each}/" for each in folders))


def _identifier(name: str) -> str:
    return f"deletion#{name}"
