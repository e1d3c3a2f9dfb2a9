"""What `tests/engines` reads of running processes, on the commands that this library would start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_local.serving.local_deployment import LocalWorkers, WorkerPlace
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.vllm_cpu.machine import Machine
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind
from tests.engines.running_processes import Difference, FoundProcess, differences

_MACHINE = Machine(memory_gib=1000, processors=64)
_NUMBERS = {"replicas", "elastic replicas", "nodes per worker"}
_SERVE = "serve"


def workers_here() -> list[LocalWorkers]:
    """Return the workers of the shipped blueprints whose engine is vLLM."""
    found: list[LocalWorkers] = []
    for name in shipped():
        blueprint = load_blueprint(name).blueprint
        if {model.engine.chosen for model in blueprint.spec.models} == {"vllm"}:
            target = LocalTarget(blueprint, VllmKind(blueprint, _MACHINE))
            plans = build_plan(blueprint).models
            found += [each for plan in plans for place in target.render(plan) for each in place.workers]
    return found


WORKERS = workers_here()
HOME = Path("/run/deployment")


def started(workers: LocalWorkers, home: Path) -> FoundProcess:
    """Return the first worker as it would be started."""
    launch = workers.launch("a-model", WorkerPlace(home, "127.0.0.7", 9090), 1)
    words = launch.command[1:]
    if workers.planned.command[1:] == (_SERVE,):
        words = words[words.index(_SERVE) :]
    return FoundProcess(tuple(words), launch.environment)


def told(workers: LocalWorkers) -> set[Difference]:
    return {
        Difference(each.setting, each.planned, each.here)
        for each in workers.replacements
        if each.setting not in _NUMBERS
    }


@pytest.mark.parametrize("workers", WORKERS, ids=lambda each: each.planned.name)
def test_a_worker_differs_from_the_plan_as_the_table_of_exceptions_says(
    workers: LocalWorkers, tmp_path: Path
) -> None:
    assert differences(workers.planned, started(workers, tmp_path), tmp_path) == told(workers)


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (("--max-num-seqs", "1"), {}),
        (("--further",), {}),
        ((), {"VLLM_NO_USAGE_STATS": "0"}),
        ((), {"FURTHER": "1"}),
        ((), {"DYN_EVENT_PLANE_HOST": "0.0.0.0"}),  # noqa: S104 -- what a worker must not have
    ],
)
def test_any_other_argument_or_variable_is_a_difference(
    words: tuple[str, ...], variables: dict[str, str], tmp_path: Path
) -> None:
    workers = WORKERS[0]
    found = started(workers, tmp_path)
    other = replace(found, words=(*found.words, *words), variables={**found.variables, **variables})
    assert differences(workers.planned, other, tmp_path) != told(workers)
