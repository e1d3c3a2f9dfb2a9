"""The capacity shift of a platform on ECS: floors are smallest capacities of Application Auto Scaling."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from tests.runtime.capacity_shift.ecs_platform import (
    SET_FLOOR,
    TARGET,
    EcsShiftPlatform,
    deploy,
    ecs_configuration,
    floor,
    new_ecs_platform,
    recorded,
    resource,
    target_of,
)
from tests.runtime.capacity_shift.shift_platform import FREEZE, NOW, PLATFORM, shifted_workers
from tests.runtime.capacity_shift.test_shift_faults import (
    LOWERED,
    RAISED,
    Faults,
    KilledError,
    broken,
    killed,
    throttled,
    timed_out,
)


@pytest.fixture
def shifting(aws_in_process: None) -> EcsShiftPlatform:
    return new_ecs_platform(ecs_configuration())


def floors_set(calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [values["ResourceId"] for operation, values in calls if operation == SET_FLOOR]


def test_a_decision_becomes_a_smallest_capacity_and_places(shifting: EcsShiftPlatform) -> None:
    outcome = shifting.new_run().run(NOW)
    assert floor(shifting.workers) == 6
    assert shifting.ceiling() == {"places": 4, "at": NOW}
    assert outcome.done == ("floor of qwen3-8b-main-worker: 2 to 6",)
    assert outcome.failed == ()
    [audit] = shifting.audits()
    assert audit["planned"] == [*outcome.done]


def test_the_largest_capacity_and_suspended_scaling_keep_their_owner(shifting: EcsShiftPlatform) -> None:
    suspended = {
        "DynamicScalingInSuspended": True,
        "DynamicScalingOutSuspended": False,
        "ScheduledScalingSuspended": False,
    }
    boto3.client("application-autoscaling").register_scalable_target(
        ResourceId=resource(shifting.workers), SuspendedState=suspended, **TARGET
    )
    with recorded() as calls:
        shifting.new_run().run(NOW)
    [sent] = [values for operation, values in calls if operation == SET_FLOOR]
    assert sent == {**TARGET, "ResourceId": resource(shifting.workers), "MinCapacity": 6}
    found = target_of(shifting.workers)
    assert (found["MaxCapacity"], found["SuspendedState"]) == (10, suspended)


def test_the_decision_sees_the_tasks_that_are_wanted_and_the_workers_that_answer(
    shifting: EcsShiftPlatform,
) -> None:
    shifting.new_run().run(NOW)
    [deployment] = shifting.script.seen[-1][1].deployments
    assert (deployment.replicas, deployment.ready, deployment.batch_places) == (4, 3, 16)


def test_a_floor_that_a_deployment_wrote_again_is_restored_by_the_next_run(
    shifting: EcsShiftPlatform,
) -> None:
    run = shifting.new_run()
    run.run(NOW)
    deploy(shifting.workers, 2, 10)
    assert floor(shifting.workers) == 2
    run.run(NOW + 60)
    assert floor(shifting.workers) == 6


def test_a_run_without_a_difference_sets_nothing(shifting: EcsShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    with recorded() as calls:
        run.run(NOW + 60)
    assert floors_set(calls) == []
    assert shifting.ceiling() == {"places": 4, "at": NOW + 60}


def test_what_real_time_gets_comes_before_what_it_gives(aws_in_process: None) -> None:
    both = new_ecs_platform(ecs_configuration("shift", LOWERED, RAISED))
    deploy(LOWERED, 9, 10)
    with recorded() as calls:
        both.new_run().run(NOW)
    assert floors_set(calls) == [resource(RAISED), resource(LOWERED)]


def test_observing_changes_nothing(aws_in_process: None) -> None:
    observing = new_ecs_platform(ecs_configuration("observe"))
    with recorded() as calls:
        observing.new_run().run(NOW)
    assert floors_set(calls) == []
    assert observing.ceiling() is None
    assert len(observing.audits()) == 1


def test_frozen_everything_stays(shifting: EcsShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    boto3.client("ssm").put_parameter(Name=FREEZE, Value="shift", Type="String", Overwrite=True)
    shifting.script.floor, shifting.script.places = 9, 16
    run.run(NOW + 60)
    assert floor(shifting.workers) == 6
    assert shifting.ceiling() == {"places": 4, "at": NOW + 60}


def without_target(platform: EcsShiftPlatform) -> None:
    boto3.client("application-autoscaling").deregister_scalable_target(
        ResourceId=resource(platform.workers), **TARGET
    )


def without_service(platform: EcsShiftPlatform) -> None:
    boto3.client("ecs").delete_service(cluster=PLATFORM, service=platform.workers.name, force=True)


@pytest.mark.parametrize(
    ("removes", "says"),
    [(without_target, "is no scalable target"), (without_service, "does not exist")],
)
def test_a_service_that_does_not_scale_has_no_batch_and_nothing_is_lent(
    aws_in_process: None, removes: Callable[[EcsShiftPlatform], None], says: str
) -> None:
    both = new_ecs_platform(ecs_configuration("shift", RAISED, LOWERED))
    deploy(LOWERED, 9, 10)
    removes(both)
    outcome = both.new_run().run(NOW)
    [audit] = [each for each in both.audits() if "unread" in each]
    assert says in audit["unread"][RAISED.name]
    assert floor(LOWERED) == 9
    assert len(outcome.failed) == 1


def test_a_refused_floor_lends_nothing_and_says_why(
    aws_in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = new_ecs_platform(ecs_configuration("shift", RAISED, LOWERED))
    deploy(LOWERED, 9, 10)
    scaling = boto3.client("application-autoscaling")
    monkeypatch.setattr(boto3, "client", lambda name: scaling if "auto" in name else _client(name))

    def refused(**_values: Any) -> None:
        raise ClientError(
            {"Error": {"Code": "ConcurrentUpdateException", "Message": "another update"}}, SET_FLOOR
        )

    run = both.new_run()
    monkeypatch.setattr(scaling, "register_scalable_target", refused)
    outcome = run.run(NOW)
    assert floor(LOWERED) == 9
    assert "ConcurrentUpdateException" in outcome.failed[0]
    assert RAISED.name in outcome.failed[0]
    assert len(outcome.failed) == 2


_client = boto3.client


@pytest.mark.parametrize("breaks", [throttled, timed_out, killed])
def test_each_call_fails_and_the_next_run_completes_it(
    aws_in_process: None, breaks: Callable[[str], BaseException]
) -> None:
    platform = new_ecs_platform(ecs_configuration("shift", RAISED, LOWERED))
    run = platform.new_run()
    run.run(NOW - 60)

    def reset() -> None:
        deploy(RAISED, 3, 10)
        deploy(LOWERED, 9, 10)

    def outcome() -> tuple[int, int, int]:
        return floor(RAISED), floor(LOWERED), (platform.ceiling() or {})["places"]

    reset()
    platform.script.places = 1
    faults = Faults(breaks, first=0, lasts=False)
    with broken(faults):
        run.run(NOW)
    wanted, number, at = outcome(), faults.calls, NOW
    assert wanted == (6, 6, 2)
    assert number >= 9
    for call in range(1, number + 1):
        at += 180
        reset()
        with broken(Faults(breaks, first=call, lasts=False)), suppress(KilledError):
            run.run(at)
        assert floor(LOWERED) == 9 or floor(RAISED) == 6, f"call {call}: lent before that"
        run.run(at + 60)
        assert outcome() == wanted, f"call {call}: the next run completes it"


def test_two_runs_at_once_change_things_once(
    shifting: EcsShiftPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaking, decide = shifting.new_run(), shifting.script.decide

    def decide_while_another_runs(*arguments: Any) -> ShiftDecision:
        monkeypatch.setattr(shifting.script, "decide", decide)
        overtaking.run(NOW)
        return decide(*arguments)

    monkeypatch.setattr(shifting.script, "decide", decide_while_another_runs)
    with recorded() as calls:
        overtaken = shifting.new_run().run(NOW)
    assert overtaken.overtaken
    assert floors_set(calls) == [resource(shifting.workers)]


@pytest.mark.parametrize(("decided", "expected"), [(0, 2), (99, 10)])
def test_a_floor_stays_within_the_range_of_the_blueprint(
    shifting: EcsShiftPlatform, decided: int, expected: int
) -> None:
    shifting.script.floor = decided
    shifting.new_run().run(NOW)
    assert floor(shifting.workers) == expected


def test_roles_have_a_floor_each(aws_in_process: None) -> None:
    roles = shifted_workers(role="prefill"), shifted_workers(role="decode")
    both = new_ecs_platform(ecs_configuration("shift", *roles))
    both.new_run().run(NOW)
    assert [floor(each) for each in roles] == [6, 6]
