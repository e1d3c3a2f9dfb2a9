"""From the policy by way of Firehose and S3 to the nightly comparison: they agree until something is lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from door_reconciliation.handler import reconcile

from inference_contracts import door_names
from inference_contracts import reconciliation_names as names
from inference_contracts.door_configuration import NANO, DoorBudget
from inference_contracts.door_ledger import windows_at
from tests.runtime.front_door.conftest import Platform, StartPolicy
from tests.runtime.front_door.policy_process import a_configuration, wait_for

pytestmark = pytest.mark.clock

#: What a request reserves, and what one with usage costs.
MOST, COST = 356 * 200 + 100 * 800, 12 * 200 + 5 * 800
#: Whole answers, cut ones, those without usage, and those that failed, of each team.
WHOLE, CUT, UNKNOWN, FAILED = 6, 2, 1, 1
SPENT = (WHOLE + CUT) * COST + UNKNOWN * MOST


def zone_of_noon() -> str:
    """Return a time zone in which no day begins during the test. Their signs are those of POSIX."""
    hours = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-hours:+d}"


def test_ledger_and_records_agree_until_a_record_is_lost(
    platform: Platform, start_policy: StartPolicy, ledger_table: str
) -> None:
    """Red if a request is charged and not recorded, or recorded otherwise than charged, also over a kill."""
    bucket, stream = platform.usage_stream()
    zone = zone_of_noon()
    configured = a_configuration(
        DoorBudget("team", "red", nano_per_day=NANO),
        DoorBudget("team", "blue", nano_per_day=NANO, enforce="after"),
        time_zone=zone,
    )
    policies = [
        start_policy(name, configured, usage_stream=stream, ledger_table=ledger_table)
        for name in ("one", "two")
    ]
    keys = [platform.known_key(team, *policies) for team in ("red", "blue")]
    for key in keys:
        for number in range(WHOLE):
            policy = policies[number % 2]
            policy.log(policy.ask(key))
        for _ in range(CUT):
            policies[0].log(policies[0].ask(key), flags="DC")
        policies[1].log(policies[1].ask(key), **{"in": None, "out": None})
        policies[1].log(policies[1].ask(key), status=500, **{"in": None, "out": None})
    # It reads again what it may not have settled or delivered.
    policies[1].kill()
    policies[1].start()
    s3, dynamodb = (platform.emulator.client(name) for name in ("s3", "dynamodb"))
    now = windows_at(datetime.now(UTC).timestamp(), ZoneInfo(zone)).day_end + 4 * 3600
    environment = {
        names.PLATFORM: "test",
        names.TABLE: ledger_table,
        names.BUCKET: bucket,
        names.ZONE: zone,
    }

    def compared() -> dict[str, Any]:
        return reconcile(environment, now, dynamodb, s3)

    whole = 2 * (WHOLE + CUT + UNKNOWN + FAILED)
    wait_for(lambda: compared()["records"] == whole, pause=0.2)
    wait_for(lambda: compared().get(names.LEDGER_USD) == 2 * SPENT / NANO, pause=0.2)
    found = compared()
    assert (found[names.DIFFERENCE_PERCENT], found["recordedMoreUsd"]) == (0.0, {})
    assert (found["unreadable"], found["notCompared"]) == (0, [])
    assert found[names.RECORDED_USD] == 2 * SPENT / NANO

    # A whole day of 20 requests: one that is lost is more than the alarm's threshold.
    [lost, team] = _one_of(s3, bucket)
    s3.delete_object(Bucket=bucket, Key=lost)
    found = compared()
    assert found[names.DIFFERENCE_PERCENT] > names.MOST_DIFFERENT_PERCENT
    assert found["recordedMoreUsd"][team] < 0
    [directive] = found["_aws"]["CloudWatchMetrics"]
    assert names.DIFFERENCE_PERCENT in {each["Name"] for each in directive["Metrics"]}


def _one_of(s3: Any, bucket: str) -> tuple[str, str]:
    """Return an object with the record of a request that cost something, and its team."""
    for each in s3.list_objects_v2(Bucket=bucket, Prefix=door_names.USAGE_PREFIX)["Contents"]:
        content = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        for line in content.splitlines():
            record = json.loads(line)
            if record["cost_nano"]:
                return each["Key"], record["team"]
    raise AssertionError("no record has a cost")
