"""One policy process, with a real store and an emulated AWS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference_contracts import door_headers
from inference_contracts.door_configuration import DoorBudget, DoorConfiguration, DoorTarget
from inference_contracts.door_keys import key_id
from inference_contracts.request_headers import BATCH_HEADERS
from tests.runtime.front_door.conftest import Platform, StartPolicy
from tests.runtime.front_door.keys.key_tables import REGION
from tests.runtime.front_door.policy_process import (
    a_configuration,
    a_model,
    as_object,
    log_line,
    wait_for,
    write_lines,
)

pytestmark = pytest.mark.clock

#: What a request costs at most, in nano-dollars, with 256 tokens of the template; and what it costs really.
MOST, COST = 356 * 200 + 100 * 800, 12 * 200 + 5 * 800


def a_platform(*budgets: DoorBudget) -> DoorConfiguration:
    """Return two models, of which one is for a team only."""
    models = (a_model(), a_model("org/own.1", aliases=("own",), teams=("red",)))
    return a_configuration(*budgets, models=models)


def test_a_request_is_reserved_refused_and_settled(platform: Platform, start_policy: StartPolicy) -> None:
    """Red if a budget admits more than it has, or if a settlement gives back nothing, or twice."""
    policy = start_policy("one", a_platform(DoorBudget("team", "red", nano_per_day=2 * MOST)))
    key = platform.known_key("red", policy)
    admitted = policy.ask(key)
    assert admitted.status == 200
    assert admitted.headers[door_headers.TARGET] == "primary"
    assert admitted.headers[door_headers.RESERVED] == str(MOST)
    assert policy.ask(key).status == 200
    refused = policy.ask(key)
    assert (refused.status, refused.code) == (429, "insufficient_quota")
    assert refused.headers[door_headers.BUDGET_SCOPE] == "team"
    assert 1 <= int(refused.headers["retry-after"]) <= 25 * 3600
    policy.log(admitted)
    policy.log(admitted)
    wait_for(lambda: policy.metric("settled_again_total") == 1)
    assert policy.metric("spent_nano_total") == COST
    # What nobody has signed is not settled: a request that still runs keeps its reservation.
    forged = admitted.headers[door_headers.RESERVATION].replace(".", ".9", 1)
    policy.log(admitted, reservation=forged)
    write_lines(Path(policy.settings.access_log), ["", "{", '{"reservation": 1}'])
    policy.log(admitted)
    wait_for(lambda: policy.metric("settled_again_total") == 2)
    assert policy.metric("settled_total") == 3
    assert policy.ask(key).status == 429


def test_a_request_that_envoy_ended_before_the_decision_costs_nothing(
    platform: Platform, start_policy: StartPolicy
) -> None:
    """Red if callers who go away meanwhile, or a slow store, fill budgets and models until a restart."""
    policy = start_policy("one", a_platform(DoorBudget("team", "red", nano_per_day=2 * MOST)))
    key = platform.known_key("red", policy)
    assert policy.ask(key, x_request_id="stays").status == 200
    assert policy.ask(key, x_request_id="gone").status == 200
    assert policy.ask(key).status == 429
    line = '{"callersId":"reservation","id":"%s","status":0,"flags":"DC"}'
    write_lines(Path(policy.settings.access_log), [line % "gone", line % "gone", line % "other"])
    wait_for(lambda: policy.metric("open_requests") == 1)
    wait_for(lambda: policy.ask(key, x_request_id="unheard").status == 200)
    assert policy.ask(key).status == 429
    assert policy.metric("spent_nano_total") == 0
    # The policy dies before Envoy has its last decision. The next process knows what it had admitted.
    policy.kill()
    write_lines(Path(policy.settings.access_log), [line % "unheard"])
    policy.start()
    wait_for(lambda: policy.metric("open_requests") == 1)
    wait_for(lambda: policy.ask(key).status == 200)
    assert policy.ask(key).status == 429


def test_models_keys_and_configurations_change_while_it_runs(
    platform: Platform, start_policy: StartPolicy
) -> None:
    """Red if a caller sees or uses another team's model, a revoked key works, or a bad file is taken."""
    policy = start_policy("one", a_platform())
    red, blue = platform.known_key("red", policy), platform.known_key("blue", policy)
    scoped = platform.known_key("red", policy, models=("org/own.1",))

    def models(key: str) -> list[str]:
        decided = policy.ask(key, path="/v1/models")
        assert decided.headers[door_headers.TARGET] == door_headers.POLICY_CLUSTER
        own = {name: value for name, value in decided.headers.items() if name.startswith("x-door-")}
        return [each["id"] for each in json.loads(policy.get("/v1/models", own).body)["data"]]

    assert [models(key) for key in (red, blue, scoped)] == [["m", "org/own.1"], ["m"], ["org/own.1"]]
    assert policy.ask(red, model="own").headers[door_headers.PUBLIC] == "org/own.1"
    for key, model in ((blue, "own"), (blue, "org/own.1"), (scoped, "m"), (red, "../m")):
        assert policy.ask(key, model=model).code == "model_not_found"
    assert policy.ask(scoped, model="own", openai_project="p").headers[door_headers.PROJECT] == "p"
    # A key that is revoked, and a configuration with one model less.
    record = platform.keys.get(key_id(red) or "")
    assert record
    platform.keys.put(record.from_values({**record.to_values(), "revoked": 1}), before=record)
    wait_for(lambda: policy.ask(red).status == 401, 5.0, pause=0.25)
    policy.configure(a_configuration(models=(a_model("other"),)))
    wait_for(lambda: policy.ask(blue, model="other").status == 200)
    assert policy.ask(blue).status == 404
    # A bad configuration changes nothing, and is counted.
    Path(policy.settings.configuration).write_text('{"policy": {"platform": 1}}')
    wait_for(lambda: policy.metric("configuration_refused_total") >= 1)
    assert policy.ask(blue, model="other").status == 200
    assert json.loads((policy.folder / "clusters.json").read_text()) == {"resources": []}
    # Also if the process starts again meanwhile.
    policy.kill()
    policy.start()
    assert policy.ask(blue, model="other").status == 200
    assert policy.metric("configuration_refused_total") >= 1


def test_a_configuration_in_a_bucket_is_followed(platform: Platform, start_policy: StartPolicy) -> None:
    """Red if tasks of ECS, which have no mounted file, never see another configuration."""
    s3, bucket = platform.emulator.client("s3"), "door-configuration"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})

    def put(name: str) -> None:
        content = as_object(a_configuration(models=(a_model(name),)))
        s3.put_object(Bucket=bucket, Key="c", Body=content.encode())

    put("m")
    policy = start_policy("one", a_configuration(), configuration=f"s3://{bucket}/c")
    key = platform.known_key("red", policy)
    assert policy.ask(key).status == 200
    put("other")
    wait_for(lambda: policy.ask(key, model="other").status == 200)


def test_replicas_know_what_the_others_have_in_progress(
    platform: Platform, start_policy: StartPolicy
) -> None:
    """Red if each replica fills a target by itself, or a refusal for lack of room says no time."""
    model = a_model(targets=(DoorTarget("primary", "served", 100, 10),))
    one, two = (start_policy(name, a_configuration(models=(model,))) for name in ("one", "two"))
    key = platform.known_key("red", one, two)
    answers = [one.ask(key) for _ in range(13)]
    # Ten at once, and 15 % more for the priority 50.
    assert [each.status for each in answers] == [200] * 12 + [429]
    assert answers[-1].code == "rate_limit_exceeded"
    assert int(answers[-1].headers["retry-after"]) >= 1
    wait_for(lambda: two.metric('target_requests{target="primary"}') == 12)
    assert two.ask(key).status == 429
    # Requests of batch step back before others do, and come back last.
    for each in answers[:4]:
        one.log(each)
    wait_for(lambda: one.metric('target_requests{target="primary"}') == 8)
    assert one.ask(key).status == 200
    assert one.ask(key, **BATCH_HEADERS).status == 429


def test_limits_after_the_fact_count_every_line_once_over_kills(
    platform: Platform, start_policy: StartPolicy
) -> None:
    """Red if what was not reserved is charged twice, or not at all, after a kill; or is never refused."""
    budget = DoorBudget("team", "red", nano_per_day=300 * COST, enforce="after")
    policy = start_policy("one", a_platform(budget))
    key = platform.known_key("red", policy)
    admitted = policy.ask(key)
    with platform.store.client() as store:
        assert store.hget("door:{red}", "R") is None
    log = Path(policy.settings.access_log)
    for _ in range(2):
        write_lines(log, [log_line(admitted)] * 120)
        policy.kill()
        policy.start()
    write_lines(log, [log_line(admitted)] * 59)
    with platform.store.client() as store:
        wait_for(lambda: int(store.hget("door:{red}", "D") or 0) >= 299 * COST)
        assert int(store.hget("door:{red}", "D")) == 299 * COST
    assert policy.ask(key).status == 200
    policy.log(admitted)
    wait_for(lambda: policy.ask(key).status == 429)
    assert policy.ask(key).code == "insufficient_quota"


def test_usage_records_are_delivered(platform: Platform, start_policy: StartPolicy) -> None:
    """Red if a settled request has no usage record, or one that says something else."""
    bucket, stream = platform.usage_stream()
    policy = start_policy("one", a_platform(), usage_stream=stream)
    key = platform.known_key("red", policy)
    policy.log(policy.ask(key), id="0b6b7a52-0000-4000-8000-000000000001")
    s3 = platform.emulator.client("s3")
    wait_for(lambda: s3.list_objects_v2(Bucket=bucket)["KeyCount"] > 0, pause=0.1)
    [found] = s3.list_objects_v2(Bucket=bucket)["Contents"]
    record = json.loads(s3.get_object(Bucket=bucket, Key=found["Key"])["Body"].read())
    assert record["id"] == "0b6b7a52-0000-4000-8000-000000000001"
    assert (record["team"], record["model"], record["cost_nano"], record["basis"]) == (
        "red",
        "m",
        COST,
        "usage",
    )
    assert policy.metric("records_waiting") == 0
