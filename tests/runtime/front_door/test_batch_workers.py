"""Jobs of batch through a real door: Envoy, policy, store and a worker's process before a counting engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batch.contracts.shard import ShardLine
from inference_contracts.door_configuration import DoorBudget, DoorTarget, DoorTeam
from inference_contracts.door_ledger import team_tag
from inference_contracts.platform_keys import SECRET_VARIABLE, way_model, write_keys
from tests.runtime.batch.worker import jobs
from tests.runtime.batch.worker.conftest import Stage, staged
from tests.runtime.batch.worker.fake_endpoint import FakeEndpoint
from tests.runtime.front_door.conftest import Platform
from tests.runtime.front_door.policy_process import PRICES, a_configuration, a_model, wait_for
from tests.runtime.front_door.test_with_envoy import Replica

pytestmark = pytest.mark.clock

TEAM = "ads"  # of `put_job`
MODEL = way_model("batch", jobs.MODEL)
#: Of an answer of the engine, and of the most that one may be: its prompt is bounded by the model's context.
COST = 7 * PRICES.input_token + 3 * PRICES.output_token
MOST = 8 * PRICES.input_token + 3 * PRICES.output_token
#: Admits 32 lines: what 31 have cost leaves room for one more, and what 32 have cost does not.
LIMIT = 31 * MOST


@pytest.fixture
def replica(platform: Platform, tmp_path: Path) -> Iterator[Replica]:
    targets = (DoorTarget("one", "served-model", 100, None),)
    model = a_model(MODEL, targets=targets, caller="batch", teams=(TEAM,), priority=0, context_length=8)
    budget = DoorBudget("team", TEAM, nano_per_month=LIMIT)
    configuration = a_configuration(budget, models=(model,), teams=(DoorTeam(TEAM, ()),))
    running = Replica(tmp_path / "one", platform, configuration)
    yield running
    running.stop()


@pytest.fixture
def stage(platform: Platform, replica: Replica, tmp_path: Path) -> Iterator[Stage]:
    """A queue, and a worker that has only the key of its secret."""
    platform.emulator.client("s3").create_bucket(
        Bucket=jobs.BUCKET,
        CreateBucketConfiguration={"LocationConstraint": platform.emulator.region},
    )
    key = platform.known_key(TEAM, replica.policy, caller="batch", models=(MODEL,))
    secret = platform.emulator.client("secretsmanager").create_secret(
        Name="keys-of-batch", SecretString=write_keys({TEAM: key})
    )
    door = FakeEndpoint(url=f"http://127.0.0.1:{replica.door.port}")
    with staged(platform.emulator, door, tmp_path, "shards-through-the-door") as found:
        found.start({SECRET_VARIABLE: secret["ARN"], "BATCH_IN_FLIGHT_START": "16"})
        yield found


def lines(count: int, prefix: str) -> list[ShardLine]:
    return [replace(each, body={**each.body, "max_tokens": 3}) for each in jobs.lines(count, prefix)]


def cost(rows: list[dict[str, Any]]) -> int:
    """Return what the output file says that a job has used, in nano-dollars."""
    usage = [row["response"]["body"]["usage"] for row in rows]
    return sum(
        each["prompt_tokens"] * PRICES.input_token + each["completion_tokens"] * PRICES.output_token
        for each in usage
    )


def test_lines_are_charged_to_their_team_until_its_budget_ends(
    platform: Platform, replica: Replica, stage: Stage
) -> None:
    """Red if a line is lost, or charged twice or not at all, or if lines do not wait for their budget."""

    def charged() -> int:
        with platform.store.client() as store:
            spent, reserved = store.hmget(team_tag(TEAM), "M", "R")
        return int(spent or 0) + int(reserved or 0)

    s3 = platform.emulator.client("s3")
    first = jobs.put_job(s3, {"0": lines(20, "a")})
    stage.wait(stage.submit(first))
    output, error = first.rows("0")
    assert (len(output), error) == (20, [])
    wait_for(lambda: replica.policy.metric("settled_total") == 20)
    assert charged() == cost(output) == 20 * COST
    # The engine got its own name of the model, and no key.
    asked = replica.door.engine.seen[-1]
    assert b'"served-model"' in asked.body
    assert "authorization" not in asked.headers

    second = jobs.put_job(s3, {"0": lines(40, "b")}, deadline_seconds=12)
    stage.wait(stage.submit(second))
    output, error = second.rows("0")
    assert len(output) == 12
    assert Counter(row["error"]["code"] for row in error) == {"insufficient_quota": 28}
    assert f"The budget of the team '{TEAM}'" in error[0]["error"]["message"]
    wait_for(lambda: replica.policy.metric("settled_total") == 32)
    assert charged() == 32 * COST
    done = second.done("0")
    assert done is not None
    # A redrive runs them.
    assert (done["completed"], done["failed"], done["expired"]) == (12, 28, 28)
