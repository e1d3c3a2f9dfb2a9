"""A door that comes in mid-month begins with what batch has spent in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pytest

from batch.carry_over.handler import carry_over
from batch.jobs.spending import month_of
from inference_contracts.batch_names import ID_ATTRIBUTE, SPENDING_PREFIX
from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_terms import NANO
from inference_local.emulator.emulator import Emulator
from tests.runtime.batch import resources
from tests.runtime.front_door.conftest import Platform, StartPolicy
from tests.runtime.front_door.keys.key_tables import REGION
from tests.runtime.front_door.policy_process import a_configuration, wait_for
from tests.runtime.front_door.race_clients import COST
from tests.runtime.front_door.test_policy_process import MOST

pytestmark = pytest.mark.clock

#: Zone of `a_configuration`.
ZONE = ZoneInfo("UTC")
#: Stands for 100 dollars: a hundred requests.
BUDGET = 100 * MOST


@pytest.fixture
def jobs(emulator: Emulator) -> Iterator[Any]:
    """Batch's table of records."""
    client = emulator.client("dynamodb")
    client.create_table(**resources.TABLE_PROPERTIES)
    yield client
    client.delete_table(TableName=resources.TABLE)


def carry(platform: Platform, ledger_table: str, now: float) -> dict[str, float]:
    environment, client = platform.emulator.environment(), platform.emulator.client("dynamodb")
    session = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name=REGION
    )
    dynamodb = session.resource("dynamodb", endpoint_url=platform.emulator.endpoint_url)
    table = dynamodb.Table(resources.TABLE)
    return carry_over(table, client, ledger_table, teams=("red", "blue"), zone=ZONE, now=now)


def test_a_team_gets_at_the_door_what_batch_has_left_of_its_month(
    platform: Platform, start_policy: StartPolicy, ledger_table: str, jobs: Any
) -> None:
    """Red if a team that has spent 80 of 100 in jobs may spend 100 more at the door."""
    now = time.time()
    spent = {"S": f"{SPENDING_PREFIX}red#{month_of(now)}"}
    usd = {"N": f"{80 * MOST / NANO:.9f}"}
    jobs.put_item(TableName=resources.TABLE, Item={ID_ATTRIBUTE: spent, "qwen3-8b/nightly/usd": usd})
    for _ in range(2):
        assert carry(platform, ledger_table, now) == {"red": 80 * MOST / NANO}
    budgets = [DoorBudget("team", team, nano_per_month=BUDGET) for team in ("red", "blue")]
    policy = start_policy("one", a_configuration(*budgets), ledger_table=ledger_table)
    red, blue = platform.known_key("red", policy), platform.known_key("blue", policy)
    answers = [policy.ask(red) for _ in range(21)]
    assert [each.status for each in answers[:20]] == [200] * 20
    assert answers[20].code == "insufficient_quota"
    # The other team has spent nothing.
    assert policy.ask(blue).status == 200
    # What replicas write goes on from there, and a later call leaves it as it is.
    policy.log(answers[0])

    def checkpoint() -> int:
        items = platform.emulator.client("dynamodb").scan(TableName=ledger_table)["Items"]
        return max((int(each["M"]["N"]) for each in items if each["account"]["S"] == "door:{red}"), default=0)

    wait_for(lambda: checkpoint() == 80 * MOST + COST)
    assert carry(platform, ledger_table, now) == {}
    assert checkpoint() == 80 * MOST + COST
    # An upgrade with another store and another budget goes on where the month was.
    policy.kill()
    with platform.store.client() as client:
        client.flushall()
    changed = DoorBudget("team", "red", nano_per_month=83 * MOST)
    policy = start_policy("two", a_configuration(changed), ledger_table=ledger_table)
    red = platform.known_key("red", policy)
    answers = [policy.ask(red) for _ in range(3)]
    assert [each.status for each in answers[:2]] == [200] * 2
    assert answers[2].code == "insufficient_quota"
