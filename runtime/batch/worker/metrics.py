"""Metrics and events of the worker: lines of JSON on standard output.

It writes a line of metrics once a minute, and a line for each event of a shard. No line contains any part of
a prompt, an answer or a row.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from batch.embedded_metrics import emit
from inference_contracts import batch_names


@dataclass(slots=True)
class Metrics:
    """Counts since the last line of metrics."""

    platform: str
    model: str
    requests: int = 0
    """Number of requests sent."""
    rows: int = 0
    """Lines with a result row."""
    shards: int = 0
    """Finished shards."""
    failures: Counter[str] = field(default_factory=Counter)
    """Requests without an answer, by kind of fault."""

    def write(self, *, in_flight: int, limit: int, held: int) -> None:
        """Write the line, and reset the counts.

        in_flight, limit: Number of requests in flight, and their limit.
        held: Number of shards in work.
        """
        values = {
            batch_names.REQUESTS: self.requests,
            batch_names.ROWS: self.rows,
            batch_names.SHARDS: self.shards,
            batch_names.REFUSED: sum(self.failures[each] for each in ("refused", "held", "budget")),
            batch_names.UNAVAILABLE: self.failures["unavailable"],
            batch_names.BROKEN: self.failures["broken"] + self.failures["lost"],
            batch_names.IN_FLIGHT: in_flight,
            batch_names.IN_FLIGHT_LIMIT: limit,
            batch_names.SHARDS_HELD: held,
        }
        emit(values, {batch_names.PLATFORM_DIMENSION: self.platform, batch_names.MODEL_DIMENSION: self.model})
        self.requests, self.rows, self.shards = 0, 0, 0
        self.failures.clear()


def log(event: str, **values: Any) -> None:
    """Write an event."""
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()
