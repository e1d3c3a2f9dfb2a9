"""A run of the capacity shift reads, decides, records and changes what is live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
import pytest

from inference_contracts.shift_names import SHIFT_ENTRY
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from operations.kubernetes_api import KubernetesObject
from operations.operations_errors import KubernetesError
from tests.runtime.capacity_shift.shift_platform import (
    FREEZE,
    MODEL,
    NOW,
    ApiServer,
    ShiftPlatform,
    new_platform,
    shift_configuration,
    shifted_workers,
)


def test_a_decision_becomes_floors_quotas_and_places(shifting: ShiftPlatform) -> None:
    outcome = shifting.new_run().run(NOW)
    assert shifting.api.floor(shifting.workers) == 6
    assert shifting.api.quota() == 8
    assert shifting.ceiling() == {"places": 4, "at": NOW}
    assert outcome.done == ("floor of qwen3-8b-main-worker: 2 to 6", "quota of l40s: 2 to 8 nvidia.com/gpu")
    assert outcome.failed == ()
    [audit] = shifting.audits()
    assert audit["planned"] == [*outcome.done]
    assert audit["deployments"][0]["reasons"] == [{"code": "forecast", "text": "as the test says"}]


def test_what_real_time_gets_comes_before_what_batch_gets(aws_in_process: None) -> None:
    other = shifted_workers("other")
    both = new_platform(shift_configuration("shift", shifted_workers(), other))
    both.api.objects[f"scaledobjects/{other.name}"]["spec"]["minReplicaCount"] = 9
    both.new_run().run(NOW)
    names = [name for name, _ in both.api.patches]
    assert names[0] == f"scaledobjects/{both.workers.name}"
    assert set(names[1:]) == {f"scaledobjects/{other.name}", "clusterqueues/l40s"}


def test_nothing_is_lent_when_real_time_did_not_get_what_it_needs(shifting: ShiftPlatform) -> None:
    shifting.api.fails_on_patch = "scaledobjects"
    outcome = shifting.new_run().run(NOW)
    assert shifting.api.quota() == 2
    assert len(outcome.failed) == 2
    assert [each["failed"] for each in shifting.audits() if "failed" in each] == [[*outcome.failed]]


def test_a_floor_that_helm_set_back_is_restored_by_the_next_run(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    shifting.api.objects[f"scaledobjects/{shifting.workers.name}"]["spec"]["minReplicaCount"] = 2
    run.run(NOW + 60)
    assert shifting.api.floor(shifting.workers) == 6


def test_a_run_without_a_difference_patches_nothing(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    shifting.api.patches.clear()
    run.run(NOW + 60)
    assert shifting.api.patches == []
    assert shifting.ceiling() == {"places": 4, "at": NOW + 60}, "a ceiling is renewed by each run"


@pytest.mark.parametrize(("decided", "floor"), [(0, 2), (99, 10)])
def test_a_floor_stays_within_the_range_of_the_blueprint(
    shifting: ShiftPlatform, decided: int, floor: int
) -> None:
    shifting.script.floor = decided
    shifting.new_run().run(NOW)
    assert shifting.api.floor(shifting.workers) == floor


@pytest.mark.parametrize(("decided", "quota"), [(0, 2), (99, 12)])
def test_a_quota_stays_between_that_of_the_blueprint_and_the_pool(
    shifting: ShiftPlatform, decided: int, quota: int
) -> None:
    shifting.script.accelerators = decided
    shifting.new_run().run(NOW)
    assert shifting.api.quota() == quota


@pytest.mark.parametrize(("others", "quota"), [("status", 8), ("spec", 2)])
def test_a_queue_that_kueue_only_counted_anew_is_changed_all_the_same(
    shifting: ShiftPlatform, monkeypatch: pytest.MonkeyPatch, others: str, quota: int
) -> None:
    """The queue has another version than was read, because of a job, or because somebody changed it."""
    patch, queue = shifting.api.patch, shifting.api.objects["clusterqueues/l40s"]

    def written_meanwhile(path: str, change: Mapping[str, Any]) -> KubernetesObject:
        if path.endswith("clusterqueues/l40s"):
            if queue["metadata"]["resourceVersion"] == "7":
                queue["metadata"]["resourceVersion"] = "8"
                queue.setdefault(others, {})["pendingWorkloads"] = 3
            if change["metadata"]["resourceVersion"] != queue["metadata"]["resourceVersion"]:
                raise KubernetesError("it was changed", 409)
        return patch(path, change)

    monkeypatch.setattr(shifting.api, "patch", written_meanwhile)
    outcome = shifting.new_run().run(NOW)
    assert (shifting.api.quota(), len(outcome.failed)) == (quota, int(others == "spec"))


def test_observing_records_and_changes_nothing(aws_in_process: None) -> None:
    observing = new_platform(shift_configuration("observe"))
    observing.new_run().run(NOW)
    assert (observing.api.patches, observing.ceiling()) == ([], None)
    assert len(observing.audits()) == 1


def test_a_freeze_keeps_what_batch_had(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    boto3.client("ssm").put_parameter(Name=FREEZE, Value="shift", Type="String", Overwrite=True)
    shifting.script.floor, shifting.script.places = 9, 16
    shifting.api.patches.clear()
    run.run(NOW + 60)
    assert shifting.api.patches == []
    assert shifting.ceiling() == {"places": 4, "at": NOW + 60}


def test_a_switch_that_cannot_be_read_is_told_apart_from_a_freeze(shifting: ShiftPlatform) -> None:
    boto3.client("ssm").delete_parameter(Name=FREEZE)
    shifting.new_run().run(NOW)
    assert shifting.script.seen[-1][3].freeze == "unknown"


def test_the_state_of_a_run_is_that_of_the_next(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    run.run(NOW + 60)
    first, second = [state for _, _, state, _ in shifting.script.seen]
    assert first is None
    assert second is not None
    assert second.deployments[shifting.workers.name].floor == 6


def test_workers_that_the_api_server_does_not_show_have_no_batch(shifting: ShiftPlatform) -> None:
    run = shifting.new_run()
    run.run(NOW)
    shifting.api.fault = KubernetesError("it is away")
    outcome = run.run(NOW + 60)
    assert shifting.ceiling() == {"places": 0, "at": NOW + 60}
    assert outcome.done == ()


def test_without_keda_nothing_is_lent(shifting: ShiftPlatform) -> None:
    del shifting.api.objects[f"scaledobjects/{shifting.workers.name}"]
    shifting.new_run().run(NOW)
    [audit] = [each for each in shifting.audits() if "unread" in each]
    assert "does not exist" in audit["unread"][shifting.workers.name]
    assert shifting.api.quota() == 2
    assert shifting.ceiling() == {"places": 0, "at": NOW}


def test_ready_workers_are_those_that_answer(shifting: ShiftPlatform) -> None:
    shifting.new_run().run(NOW)
    [deployment] = shifting.script.seen[-1][1].deployments
    assert (deployment.replicas, deployment.ready, deployment.batch_places) == (4, 3, 16)


def test_both_roles_of_a_release_limit_its_places(aws_in_process: None) -> None:
    roles = shifted_workers(role="prefill"), shifted_workers(role="decode")
    both = new_platform(shift_configuration("shift", *roles))
    both.new_run().run(NOW)
    assert both.ceiling(MODEL) == {"places": 4, "at": NOW}


def test_two_runs_at_once_change_things_once(
    shifting: ShiftPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaking, decide = shifting.new_run(), shifting.script.decide

    def decide_while_another_runs(*arguments: Any) -> ShiftDecision:
        monkeypatch.setattr(shifting.script, "decide", decide)
        overtaking.run(NOW)
        return decide(*arguments)

    monkeypatch.setattr(shifting.script, "decide", decide_while_another_runs)
    overtaken = shifting.new_run().run(NOW)
    assert overtaken.overtaken
    assert overtaken.done == ()
    assert len(shifting.api.patches) == 2, "both changes of the run that was first"
    stored = shifting.table.read(SHIFT_ENTRY, NOW)
    assert stored is not None
    assert stored.version == 1


def test_a_run_reads_all_roles_with_two_lists(aws_in_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if roles are read one by one: two requests a minute for each."""
    roles = [shifted_workers(f"r{number}") for number in range(20)]
    many = new_platform(shift_configuration("shift", *roles))
    read: list[str] = []
    plain = ApiServer.get

    def get(api: ApiServer, path: str) -> KubernetesObject | None:
        read.append(path)
        return plain(api, path)

    monkeypatch.setattr(ApiServer, "get", get)
    many.new_run().run(NOW)
    assert [path.rpartition("/")[2] for path in (*many.api.lists, *read)] == [
        "scaledobjects",
        "horizontalpodautoscalers",
        "l40s",
    ]
    assert {many.api.floor(each) for each in roles} == {6}
