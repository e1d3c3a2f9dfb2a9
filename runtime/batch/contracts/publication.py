"""What became of answers in the signal store, and where their history lies.

The history is one object a part, ``signals/name=<signal>/date=<day>/<job>-<part>.jsonl.gz`` in a bucket of
its own; the day is that on which the job was submitted, in UTC. Rows have the columns of `HISTORY_COLUMNS`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from batch.contracts.request import Publication

#: Columns of the history and their types in Athena; name and day are partitions.
HISTORY_COLUMNS: Final = {
    "key": "string",
    "value": "string",
    "version": "bigint",
    "model": "string",
    "prompt_hash": "string",
    "time": "bigint",
    "expires": "bigint",
    "job": "string",
}


@dataclass(frozen=True, slots=True)
class Published:
    """What became of the answers of a part, or of all parts of a job.

    Parameters
    ----------
    written
        Answers that are in the store.
    superseded
        Answers that lost against a later job's, or were there already.
    unfit
        Answers that are no signal: without text, or of a line whose custom_id is longer than a key.
    """

    written: int = 0
    superseded: int = 0
    unfit: int = 0

    def __add__(self, other: Published) -> Published:
        return Published(
            self.written + other.written, self.superseded + other.superseded, self.unfit + other.unfit
        )

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Published:
        """Read the document.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a document.
        """
        return cls(**json.loads(text))


def history_key(publication: Publication, job: str, part: str) -> str:
    """Return the key of the history of a part.

    Parameters
    ----------
    publication
        Where the job's answers go.
    job, part
        The job's identifier and the part's name.
    """
    day = datetime.fromtimestamp(publication.version / 1000, UTC).date().isoformat()
    return f"signals/name={publication.signal}/date={day}/{job}-{part}.jsonl.gz"
