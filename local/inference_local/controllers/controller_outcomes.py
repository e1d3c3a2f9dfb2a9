"""What the controllers decided and did in a local run, for its report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_contracts import operations_names as names
from inference_local.controllers.run_clock import RunClock


@dataclass(frozen=True, slots=True)
class ShiftRow:
    """One decision of the capacity shift about the workers."""

    seconds: float
    """Time since the start of the run."""
    floor: int
    """Least number of workers from now on."""
    lent: float
    """Share of the workers' capacity at their largest number that batch may have, from 0 to 1."""
    batch_places: int
    """Places of batch in the deployment: its share, in shards at once."""
    batch_accelerators: int
    """Accelerators of the pool that batch's own jobs may have: the quota of Kueue's queue."""
    reasons: tuple[str, ...]
    """Codes of the reasons."""


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Requests in flight at one moment."""

    seconds: float
    """Time since the start of the run."""
    interactive: float
    batch: float
    """`interactive`, `batch`: Those of each owner."""


@dataclass(frozen=True, slots=True)
class CapacityShiftOutcome:
    """How capacity moved between interactive requests and batch."""

    decisions: tuple[ShiftRow, ...]
    """Every decision, from the audit records in the table."""
    changes: int
    """Changes of floors, quotas and ceilings that were planned, without those of the same value."""
    failed_runs: int
    """Runs of the function that ended with an error."""
    batch_completed: int
    batch_lost: int
    """`batch_completed`, `batch_lost`: Requests of the batch job with an answer, and without."""
    batch_seconds: float
    """How long the job took."""
    ttft_p95_alone_ms: float | None
    ttft_p95_beside_ms: float | None
    """`ttft_p95_alone_ms`, `ttft_p95_beside_ms`: 95th percentile of the time to first token of interactive
    requests: in the first ramp without batch, and in the second beside it. None if nothing was answered."""
    ttft_p95_ratio: float | None
    """The second over the first."""
    is_timed: bool
    """Whether this machine kept the arrival times of the requests. If not, the ratio says nothing."""
    time_factor: float
    """How much faster the function's clock went."""
    most_workers: int
    """Largest number of workers."""
    workers: tuple[tuple[float, int], ...]
    """Ready workers over time: seconds and number."""
    load: tuple[LoadSample, ...]
    """Requests in flight over time."""


@dataclass(frozen=True, slots=True)
class GpuHealthOutcome:
    """What became of a worker that was made slow."""

    injected: int
    """Workers that were made slow."""
    found: int
    """Cases about them that were confirmed."""
    replaced: int
    """Nodes of them that were replaced by one that serves."""
    false_drains: int
    """Other nodes that were cordoned."""
    cut_streams: int
    """Streams that began and did not return every token, from the slowdown to the end."""
    seconds_to_serving: float | None
    """From the slowdown until the replacement was seen to serve. None if it was not."""
    speed: float
    """Speed of the slow worker, as a share of that of the others."""
    node: str
    replacement: str
    """`node`, `replacement`: Names of its node, and of the one that replaced it. Empty if none did."""
    replacement_requests: int
    """Requests that the replacement answered."""
    times: Mapping[str, float]
    """Seconds of the run at which the case came to each state, and ``slowed``."""
    runs: int
    failed_runs: int
    """`runs`, `failed_runs`: Runs of the function, and those that ended with an error."""
    streams: int
    """Streams from the slowdown to the end, all of whose tokens were counted."""
    time_factor: float
    """How much faster the function's clock went."""
    latencies: Mapping[str, tuple[tuple[float, float], ...]]
    """Time per output token in ms over time, by pod, as the function read it."""
    slow_pod: str
    """The pod that was made slow."""


@dataclass(frozen=True, slots=True)
class ControllerOutcomes:
    """What both controllers did in a run."""

    shift: CapacityShiftOutcome
    health: GpuHealthOutcome


# Reads what the controllers wrote to their table, and counts their calls.

_CASES = "case#"
_SHIFTS = f"audit#{names.SHIFT_SERVICE}#"


@dataclass(frozen=True, slots=True)
class OperationsRecords:
    """The records of one cell."""

    client: Any
    """DynamoDB, a client of boto3."""
    table: str
    platform: str

    def cases(self) -> list[dict[str, Any]]:
        """Return all cases of GPU health."""
        return list(self._records(_CASES))

    def shifts(self, clock: RunClock, workers: str, pool: str) -> tuple[tuple[ShiftRow, ...], int]:
        """Return every decision of the shift, and how many changes they planned.

        workers, pool: Names of a ScaledObject and of its pool.
        """
        rows, changes = list[ShiftRow](), 0
        for content in self._records(_SHIFTS):
            if "deployments" not in content:
                continue
            changes += len(content.get("planned", ()))
            pools = {each["name"]: each["batch_accelerators"] for each in content["pools"]}
            rows += [
                ShiftRow(
                    seconds=clock.run_seconds(float(content["decided_at"])),
                    floor=each["floor"],
                    lent=each["lent"],
                    batch_places=each["batch_places"],
                    batch_accelerators=pools.get(pool, 0),
                    reasons=tuple(reason["code"] for reason in each["reasons"]),
                )
                for each in content["deployments"]
                if each["name"] == workers
            ]
        return tuple(rows), changes

    def _records(self, prefix: str) -> Iterator[dict[str, Any]]:
        scope = names.table_scope(self.platform, names.MAIN_CELL)
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            ConsistentRead=True,
            KeyConditionExpression=f"#scope = :scope AND begins_with({names.ENTRY_ATTRIBUTE}, :prefix)",
            ExpressionAttributeNames={"#scope": names.SCOPE_ATTRIBUTE},
            ExpressionAttributeValues={":scope": {"S": scope}, ":prefix": {"S": prefix}},
        )
        for page in pages:
            for item in page["Items"]:
                yield json.loads(item["record"]["S"])


def calls(results: Path) -> tuple[int, list[str]]:
    """Return how often a function was called, and the errors.

    results: The file that `DeployedFunction.start` returned.
    """
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return len(lines), [each["error"] for each in lines if each["error"]]
