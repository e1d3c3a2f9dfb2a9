"""What the worker says of itself: JSON lines on standard output, of which CloudWatch makes metrics.

Once a minute a line in the embedded metric format
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html),
and a line for each thing that happened to a shard. Nothing of a prompt, an answer or a row is in any of them.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

_NAMESPACE: Final = "InferenceBlueprints/Batch"


@dataclass(slots=True)
class Metrics:
    """What happened since the last line.

    Parameters
    ----------
    model
        The dimension.
    requests
        Requests that were sent.
    failures
        Those without an answer, by kind of fault.
    rows
        Lines that got a row.
    shards
        Shards that were finished.
    """

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
        directive = {
            "Namespace": _NAMESPACE,
            "Dimensions": [["Model"]],
            "Metrics": [{"Name": name, "Unit": "Count"} for name in values],
        }
        described = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
        _write({"_aws": described, "Model": self.model, **values})
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
    _write({"event": event, **values})


def _write(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()
