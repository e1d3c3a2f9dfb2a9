"""Llm-d's routing sidecar on this machine: a stand-in beside each decode worker."""

from __future__ import annotations

import sys

from inference_blueprints.serving.types import Sidecar
from inference_local.serving.launch import Launch
from inference_local.serving.llm_d import sidecar_stand_in
from inference_local.serving.local_deployment import WorkerPlace
from inference_local.serving.platform_parts import PlatformPart


def sidecar_launch(sidecar: Sidecar, worker_port: int, place: WorkerPlace) -> Launch:
    """Return how to start the stand-in, with the plan's arguments for the sidecar.

    sidecar: The sidecar of the plan.
    worker_port: Port of the worker behind it.
    place: Where the worker runs.
    """
    program = [sys.executable, "-I", "-m", sidecar_stand_in.__name__]
    command = [*program, place.address, str(worker_port), *sidecar.arguments]
    return Launch(command, {"HOME": str(place.home)})


def sidecar_part(sidecar: Sidecar, release: str) -> PlatformPart:
    """Return its row of the table of parts.

    release: Name of the deployment's release.
    """
    detail = (
        "one per decode worker, with the plan's arguments, in place of llm-d's routing sidecar; the "
        "protocol is the same"
    )
    return PlatformPart(f"Sidecars of {release}, {sidecar.name}", "stand-in", detail)
