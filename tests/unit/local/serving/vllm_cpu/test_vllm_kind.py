"""Which blueprints run on vLLM here, with how many workers, and what is refused before anything starts."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_local.serving.local_deployment import LocalDeployment, WorkerPlace
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.vllm_cpu.machine import Machine
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind

_SMALL, _LARGE = Machine(16, 2), Machine(1000, 64)


def test_another_engine_is_refused_with_what_to_do() -> None:
    kind = VllmKind(load_blueprint("p6-b300-qwen3-235b").blueprint, _LARGE)
    [finding] = kind.findings()
    assert finding.path == ("spec", "models", 0, "engine")
    assert "'qwen3-235b' has the engine sglang" in finding.message
    assert "use simulated engines" in finding.message


def test_too_little_memory_is_refused_with_both_numbers(blueprint_of: Callable[..., Blueprint]) -> None:
    kind = VllmKind(blueprint_of(("l40s", 1)), Machine(2, 2))
    with pytest.raises(UserError, match=r"needs 7 GiB of memory, this machine has 2"):
        kind.check()


def test_replicas_are_reduced_and_the_table_of_exceptions_says_so() -> None:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    [deployment] = LocalTarget(blueprint, VllmKind(blueprint, _SMALL)).render(build_plan(blueprint).models[0])
    prefill, decode = deployment.workers
    assert (prefill.replicas, decode.replicas) == (2, 1)
    [row] = [each for each in prefill.replacements if each.setting == "replicas"]
    assert (row.workers, row.planned, row.here) == ("qwen3-32b-main, prefill", "12", "2")
    assert not [each for each in decode.replacements if each.setting == "replicas"]
    assert "2 of 12 planned workers" in prefill.detail
    assert "times mean nothing" in prefill.detail


def test_a_large_machine_runs_the_planned_replicas() -> None:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    [deployment] = LocalTarget(blueprint, VllmKind(blueprint, _LARGE)).render(build_plan(blueprint).models[0])
    assert [workers.replicas for workers in deployment.workers] == [12, 1]
    assert deployment.profile is None


def test_images_reach_the_engine_as_they_are(blueprint_of: Callable[..., Blueprint]) -> None:
    blueprint = blueprint_of(("l40s", 1))
    plan = build_plan(blueprint).models[0]
    assert LocalTarget(blueprint, VllmKind(blueprint, _LARGE)).render(plan)[0].images is None
    assert LocalTarget(blueprint).render(plan)[0].images is not None


def test_the_rate_of_a_replay_is_bounded_and_the_report_says_so(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    kind = VllmKind(blueprint_of(("l40s", 1)), _LARGE)
    [row] = kind.replay_replacements()
    assert (row.workers, row.planned, row.here) == ("answerer", "1", "0.5")


def _rendered() -> list[tuple[str, LocalDeployment]]:
    """Return the deployments of the shipped blueprints that run on vLLM here, with their names."""
    blueprints = {name: load_blueprint(name).blueprint for name in shipped()}
    return [
        (f"{name} {deployment.plan.release}", deployment)
        for name, blueprint in blueprints.items()
        if {model.engine.chosen for model in blueprint.spec.models} == {"vllm"}
        for model in build_plan(blueprint).models
        for deployment in LocalTarget(blueprint, VllmKind(blueprint, _LARGE)).render(model)
    ]


def _flags(words: Iterable[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


@pytest.mark.parametrize("deployment", [pytest.param(each, id=name) for name, each in _rendered()])
def test_whatever_differs_from_the_plan_is_in_the_table_of_exceptions(
    deployment: LocalDeployment, tmp_path: Path
) -> None:
    place = WorkerPlace(tmp_path, "127.0.0.7", 0)
    frontend = deployment.frontend
    started = [(frontend.process, frontend.launch(8000, tmp_path, {}), frontend.replacements("main"))]
    if frontend.stack != "dynamo":
        started = []  # a stand-in: the table of parts says so
    started += [
        (each.planned, each.launch("some", place, 1), each.replacements) for each in deployment.workers
    ]
    for process, launch, replacements in started:
        differing = _flags(process.arguments) ^ _flags(launch.command) | {
            name
            for name in {*process.environment, *launch.environment}
            if process.environment.get(name) != launch.environment.get(name)
        }
        assert not sorted(differing - {each.setting for each in replacements})


def test_a_worker_of_several_nodes_and_an_elastic_one_say_so() -> None:
    rows = {
        (name.split()[0], each.setting): (each.planned, each.here)
        for name, deployment in _rendered()
        for workers in deployment.workers
        for each in workers.replacements
    }
    assert rows["p5en-kimi-k2", "nodes per worker"] == ("2", "1")
    assert rows["elastic-g6e", "elastic replicas"] == ("up to 12, with the load", "2")
    assert ("p5en-disaggregated", "nodes per worker") not in rows
