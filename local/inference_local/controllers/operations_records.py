"""Reads what the controllers wrote to their table, and counts their calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_contracts import operations_names as names
from inference_local.controllers.controller_outcomes import ShiftRow
from inference_local.controllers.run_clock import RunClock

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
