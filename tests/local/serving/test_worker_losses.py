"""Workers killed while they answer: no stream is lost, and the report names every lost stream."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Process, ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing
from inference_local.worker_kills import kill_workers

pytestmark = pytest.mark.faults


@contextmanager
def _served(blueprint: Blueprint, plan: ServingPlan, directory: Path) -> Iterator[LocalServing]:
    with ProcessGroup() as group, LocalServing(plan, blueprint, directory, group) as serving:
        serving.start(lambda _: None)
        yield serving


def _disaggregated(prefill: int, decode: int) -> Blueprint:
    document = load_blueprint("p5en-disaggregated").blueprint.model_dump(by_alias=True, exclude_unset=True)
    roles = document["spec"]["models"][0]["deployments"][0]["disaggregated"]
    roles["prefill"]["replicas"], roles["decode"]["replicas"] = prefill, decode
    return Blueprint.model_validate(document)


def _never_moving(process: Process) -> Process:
    position = process.arguments.index("--migration-limit") + 1
    arguments = (*process.arguments[:position], "0", *process.arguments[position + 1 :])
    return dataclasses.replace(process, arguments=arguments)


def test_a_worker_s_streams_go_on_and_it_is_replaced(tmp_path: Path, quickstart: Blueprint) -> None:
    with _served(quickstart, build_plan(quickstart), tmp_path) as serving:
        (loss,) = kill_workers(serving, lambda _: None)
        serving.check()  # the dead are not missed
        serving.replace_killed(lambda _: None)
        (again,) = kill_workers(serving, lambda _: None)
    for each in (loss, again):
        assert (each.deployment, each.role, each.workers, each.killed) == ("qwen3-8b-main", "worker", 2, 1)
        assert each.streams == 4
        assert each.moved > 0, "the worker that died had no streams"
        assert each.lost == 0


def test_prefill_and_decode_workers_can_be_lost(tmp_path: Path) -> None:
    blueprint = _disaggregated(prefill=3, decode=2)
    with _served(blueprint, build_plan(blueprint), tmp_path) as serving:
        prefill, decode = kill_workers(serving, lambda _: None)
    assert [(each.role, each.workers, each.killed) for each in (prefill, decode)] == [
        ("prefill", 3, 1),
        ("decode", 2, 1),
    ]
    for each in (prefill, decode):
        assert each.streams > 0
        assert each.moved > 0, f"the {each.role} worker that died had no streams"
        assert each.lost == 0


def test_the_one_worker_of_a_role_is_left_alone(tmp_path: Path) -> None:
    blueprint = _disaggregated(prefill=2, decode=1)
    with _served(blueprint, build_plan(blueprint), tmp_path) as serving:
        _, decode = kill_workers(serving, lambda _: None)
    assert (decode.role, decode.killed, decode.streams) == ("decode", 0, 0)


def test_without_migration_streams_are_lost_and_counted(tmp_path: Path, quickstart: Blueprint) -> None:
    plan = build_plan(quickstart)
    (deployment,) = plan.models[0].deployments
    processes = (_never_moving(deployment.entry_point), *deployment.processes[1:])
    model = dataclasses.replace(
        plan.models[0], deployments=(dataclasses.replace(deployment, processes=processes),)
    )
    with _served(quickstart, ServingPlan((model,)), tmp_path) as serving:
        (loss,) = kill_workers(serving, lambda _: None)
    assert 0 < loss.lost < loss.streams
    assert loss.moved == 0
