"""What the worker says of itself: JSON lines on standard output, of which CloudWatch makes metrics.

Once a minute a line of metrics, and a line for each thing that happened to a shard. Nothing of a prompt, an
answer or a row is in any of them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from batch.embedded_metrics import emit


@dataclass(slots=True)
class Metrics:
    """What happened since the last line.

    Parameters
    ----------
    platform, model
        The dimensions.
    requests
        Requests that were sent.
    failures
        Those without an answer, by kind of fault.
    rows
        Lines that got a row.
    shards
        Shards that were finished.
    """

    platform: str
    model: str
    requests: int = 0
    rows: int = 0
    shards: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def write(self, *, in_flight: int, limit: int, held: int) -> None:
        """Write the line and begin anew.

        Parameters
        ----------
        in_flight, limit
            Requests that are in flight and may be.
        held
            Shards that are worked on.
        """
        values = {
            "Requests": self.requests,
            "Rows": self.rows,
            "Shards": self.shards,
            "Refused": self.failures["refused"],
            "Unavailable": self.failures["unavailable"],
            "Broken": self.failures["broken"],
            "InFlight": in_flight,
            "InFlightLimit": limit,
            "ShardsHeld": held,
        }
        emit(values, {"Platform": self.platform, "Model": self.model})
        self.requests, self.rows, self.shards = 0, 0, 0
        self.failures.clear()


def log(event: str, **values: Any) -> None:
    """Write what happened.

    Parameters
    ----------
    event
        In a word.
    values
        Where and why.
    """
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()
