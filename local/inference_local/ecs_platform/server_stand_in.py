"""Stands for the server of an engine that the load balancer reaches itself: ``vllm`` or ``llama-server``.

It finds the planned process whose arguments the task has, and becomes the scripted server that a local run
starts in its place, at the address of the task. A task whose arguments are those of no planned process ends
with exit code 2.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Port
from inference_local.ecs_platform.engine_stand_in import STAND_IN_VARIABLE, is_of
from inference_local.serving.direct.scripted_role import ScriptedRole
from inference_local.serving.local_deployment import WorkerPlace
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.process_commands import Launch
from inference_local.serving.simulated_kind import SimulatedKind

#: Programs of images that this one stands for, by their path or their name in the image.
SERVERS = ("vllm", "/app/llama-server")
_WRONG = 2
_PORT = "--port"
_PLACE = ("--host", _PORT)
#: In a network of its own, a task's server listens on every address.
_ADDRESS = "0.0.0.0"  # noqa: S104


def scripted_launch(words: Sequence[str], environment: Mapping[str, str]) -> Launch | None:
    """Return how to start the scripted server; None if no planned process has the arguments.

    words: The arguments of the image's program.
    environment: Variables of the task.
    """
    words, port = _without_place(words)
    if not port:
        return None
    values = json.loads(environment[STAND_IN_VARIABLE])
    blueprint = load_blueprint(values["blueprint"]).blueprint
    target = LocalTarget(blueprint, SimulatedKind(blueprint))
    for model in build_plan(blueprint).models:
        for deployment in target.render(model):
            for workers in deployment.workers:
                if not isinstance(workers, ScriptedRole):
                    continue
                planned, _ = _without_place(workers.planned.arguments)
                process = replace(workers.planned, arguments=tuple(planned))
                if is_of(words, process, environment["TMPDIR"], further=()):
                    place = WorkerPlace(Path(environment["HOME"]), _ADDRESS, 0)
                    here = replace(workers, planned=replace(process, ports=(Port("http", port),)))
                    return here.launch(model.name, place, 1)
    return None


def _without_place(words: Sequence[str]) -> tuple[list[str], int]:
    """Return arguments without host and port, which a filter changes, and the port."""
    kept: list[str] = []
    port = 0
    rest = iter(words)
    for word in rest:
        value = next(rest, "") if word in _PLACE else None
        if value is None:
            kept.append(word)
        elif word == _PORT:
            port = int(value) if value.isdigit() else 0
    return kept, port


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Become the scripted server, or return an exit code."""
    launch = scripted_launch(words, environment)
    if launch is None:
        print(f"error: no planned process has the arguments {' '.join(words)}", file=sys.stderr)
        return _WRONG
    sys.stdout.flush()
    variables = {**environment, **launch.environment}
    return os.execve(launch.command[0], list(launch.command), variables)  # noqa: S606 - its purpose


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
