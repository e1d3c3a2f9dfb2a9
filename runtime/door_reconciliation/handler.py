"""The function `door_reconciliation.handler.handle`, which EventBridge Scheduler calls twice a day.

It reads `reconciliation_names`, and changes nothing, so it may run twice or late. A run compares the last day
that ended two hours before its time. One that is so late that the ledger has forgotten the day of some teams
leaves these out; if it has forgotten all, there is no metric, and the alarm on its absence says so.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import boto3

from door_reconciliation.ledger_day import LedgerDay, read_ledger
from door_reconciliation.recorded_day import RecordedDay, read_records
from inference_contracts import reconciliation_names as names
from inference_contracts.door_configuration import NANO
from inference_contracts.door_ledger import Windows, windows_at

#: Teams whose difference a line names: the largest.
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ledger and records of a day."""

    ledger_nano: int
    recorded_nano: int
    by_team: Mapping[str, int]
    """What the records of a team have more than the ledger, where they differ."""
    unknown: frozenset[str]
    """Teams whose day the ledger has forgotten."""

    @property
    def percent(self) -> float:
        """The differences of all teams together, in percent of what was spent."""
        most = max(self.ledger_nano, self.recorded_nano)
        return 100 * sum(map(abs, self.by_team.values())) / most if most else 0.0


def compare(ledger: LedgerDay, recorded: RecordedDay) -> Comparison:
    """Compare what is known of both."""
    counted = {team: nano for team, nano in ledger.nano.items() if team not in ledger.unknown}
    written = {team: nano for team, nano in recorded.nano.items() if team not in ledger.unknown}
    differences = {
        team: written.get(team, 0) - counted.get(team, 0) for team in counted.keys() | written.keys()
    }
    return Comparison(
        sum(counted.values()),
        sum(written.values()),
        {team: nano for team, nano in differences.items() if nano},
        ledger.unknown,
    )


def compared_day(now: float, zone: ZoneInfo) -> Windows:
    """Return the last day that ended long enough before a time."""
    return windows_at(windows_at(now - names.SETTLED_SECONDS, zone).day - 1, zone)


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Compare a day, and write the result as a line with metrics.

    event: ``time`` is the time for which the run was planned, as ISO 8601.
    """
    now = datetime.fromisoformat(event["time"]).timestamp()
    found = reconcile(os.environ, now, boto3.client("dynamodb"), boto3.client("s3"))
    print(json.dumps(found), flush=True)
    return found


def reconcile(environment: Mapping[str, str], now: float, dynamodb: Any, s3: Any) -> dict[str, Any]:
    """Compare the day of a time, and return the line.

    Raises TooManyRecordsError.
    """
    zone = ZoneInfo(environment[names.ZONE])
    day = compared_day(now, zone)
    recorded = read_records(s3, environment[names.BUCKET], day)
    compared = compare(read_ledger(dynamodb, environment[names.TABLE], day.day), recorded)
    largest = sorted(compared.by_team.items(), key=lambda each: (-abs(each[1]), each[0]))
    line: dict[str, Any] = {
        "event": "ledger compared",
        "day": datetime.fromtimestamp(day.day, zone).date().isoformat(),
        "records": recorded.records,
        "copies": recorded.copies,
        "unreadable": recorded.unreadable,
        "recordedMoreUsd": {team: nano / NANO for team, nano in largest[:_SHOWN]},
        "notCompared": sorted(compared.unknown),
    }
    is_known = not compared.unknown or compared.ledger_nano or compared.recorded_nano
    return line | (_metrics(environment[names.PLATFORM], compared) if is_known else {})


def _metrics(platform: str, compared: Comparison) -> dict[str, Any]:
    """Return metrics in CloudWatch's embedded metric format."""
    figures = {
        names.DIFFERENCE_PERCENT: compared.percent,
        names.LEDGER_USD: compared.ledger_nano / NANO,
        names.RECORDED_USD: compared.recorded_nano / NANO,
    }
    units = {names.DIFFERENCE_PERCENT: "Percent"}
    directive = {
        "Namespace": names.METRIC_NAMESPACE,
        "Dimensions": [[names.PLATFORM_DIMENSION]],
        "Metrics": [{"Name": name, "Unit": units.get(name, "None")} for name in figures],
    }
    described = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    return {"_aws": described, names.PLATFORM_DIMENSION: platform, **figures}
