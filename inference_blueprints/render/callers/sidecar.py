"""The sidecar of callers with its configuration, as containers of every target start it."""

from __future__ import annotations

import json
from dataclasses import replace

from inference_blueprints.render.callers.envoy_configuration import caller_configuration
from inference_blueprints.serving.stacks.known_callers import CALLERS_SIDECAR
from inference_blueprints.serving.types import Process, Sidecar


def rendered_sidecars(process: Process) -> tuple[Sidecar, ...]:
    """Return the sidecars of a process with all their arguments.

    Envoy gets its configuration as an argument, so a change of it starts the pod or task again, and no file
    has to be there before.
    """
    if process.callers is None:
        return process.sidecars
    text = json.dumps(caller_configuration(process.callers), separators=(",", ":"))
    return tuple(
        replace(each, arguments=("--config-yaml", text, *each.arguments))
        if each.name == CALLERS_SIDECAR
        else each
        for each in process.sidecars
    )
