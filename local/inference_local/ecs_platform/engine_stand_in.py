"""Stands for an engine's program in a task: ``python -m … -m dynamo.vllm ARGUMENTS``.

It finds the planned process whose arguments the task has, and becomes the simulated engine for them, by the
same translation as a local run. Ports and addresses are those of the task. A task whose arguments are those
of no planned process ends with exit code 2.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.task_environment import (
    CACHE_FOLDER,
    DISCOVERY_ARGUMENTS,
    named_arguments,
    with_cache_folder,
)
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import Process
from inference_contracts.ecs_names import namespace_of
from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers, WorkerPlace
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.simulated_kind import HEALTHY_ONCE_IT_SERVES, SimulatedKind

#: Variable with the document of `document`.
STAND_IN_VARIABLE = "ENGINE_STAND_IN"
_WRONG = 2
_PLACEHOLDER = re.compile(r"\\\$\\\([a-z]+(?::[^()]*)?\\\)")


def document(blueprint: Path, directory: Path) -> str:
    """Return the value of the variable.

    blueprint: File of the blueprint.
    directory: Folder with a folder for each deployment, in which ``model`` holds tokenizer and configuration.
    """
    return json.dumps({"blueprint": str(blueprint), "directory": str(directory)})


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Become the simulated engine, or return an exit code.

    words: The arguments of the image's Python: ``-m``, the engine's module, and its arguments.
    """
    values = json.loads(environment[STAND_IN_VARIABLE])
    blueprint = load_blueprint(values["blueprint"]).blueprint
    target = LocalTarget(blueprint, SimulatedKind(blueprint))
    deployments = [each for model in build_plan(blueprint).models for each in target.render(model)]
    found = _planned(words, environment, deployments)
    if found is None:
        print(f"error: no planned process has the arguments {' '.join(words)}", file=sys.stderr)
        return _WRONG
    deployment, workers = found
    own = replace(workers, planned=replace(workers.planned, arguments=tuple(words[2:])))
    home = Path(environment["HOME"])
    place = WorkerPlace(home, environment["DYN_TCP_RPC_HOST"], int(environment["DYN_SYSTEM_PORT"]))
    (home / "model").symlink_to(Path(values["directory"]) / deployment.plan.release / "model")
    command = [*own.launch(deployment.model.name, place, 1).command, *DISCOVERY_ARGUMENTS]
    sys.stdout.flush()
    variables = {**environment, **HEALTHY_ONCE_IT_SERVES}
    return os.execve(command[0], command, variables)  # noqa: S606 - becoming the engine is its purpose


def _planned(
    words: Sequence[str], environment: Mapping[str, str], deployments: Sequence[LocalDeployment]
) -> tuple[LocalDeployment, LocalWorkers] | None:
    """Return the workers that a task's arguments and its name in discovery belong to."""
    for deployment in deployments:
        if namespace_of(deployment.plan.release) == environment.get("DYN_NAMESPACE"):
            for workers in deployment.workers:
                if is_of(words, workers.planned, environment["TMPDIR"]):
                    return deployment, workers
    return None


def is_of(
    words: Sequence[str],
    process: Process,
    temporary: str,
    *,
    further: Sequence[str] = DISCOVERY_ARGUMENTS,
) -> bool:
    """Whether a task's words are those of a planned process, whatever its ports.

    words: Arguments of the image's Python, or of its server.
    process: The planned process.
    temporary: The task's folder of temporary files.
    further: Arguments that a task has beside those of the plan.
    """
    planned = with_cache_folder(named_arguments(process.arguments, process.engine_ports))
    expected = [*command_behind_filter(process)[1:], *planned, *further]
    return len(words) == len(expected) and all(
        re.fullmatch(
            _PLACEHOLDER.sub(r"\\d+", re.escape(part)), word.replace(f"{temporary}/cache", CACHE_FOLDER)
        )
        for part, word in zip(expected, words, strict=True)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
