"""Llm-d's router and its routing sidecar on this machine: stand-ins before real ``vllm serve``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.serving.types import Role, Sidecar
from inference_local.serving.llm_d import picker_stand_in, sidecar_stand_in
from inference_local.serving.local_deployment import WorkerPlace
from inference_local.serving.local_frontend import LocalFrontend
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.process_commands import Launch, environment


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


@dataclass(frozen=True, slots=True)
class LlmDRouter(LocalFrontend):
    """The plan's filter, which starts the stand-in for Envoy and the endpoint picker."""

    @property
    def stack(self) -> str:
        return "llmD"

    @property
    def moves_streams(self) -> bool:
        return False

    def launch(self, port: int, home: Path, workers: Mapping[Role, Sequence[str]]) -> Launch:
        roles = {
            "decode": [*workers.get("worker", ()), *workers.get("decode", ())],
            "prefill": [*workers.get("prefill", ())],
        }
        stand_in = [sys.executable, "-I", "-m", picker_stand_in.__name__, json.dumps(roles)]
        place = ["--host", "127.0.0.1", "--port", str(port)]
        command = [sys.executable, *self.process.command[1:], *stand_in, *place]
        return Launch(command, environment(self.process.environment, home))

    def parts(self, release: str) -> tuple[PlatformPart, ...]:
        detail = (
            f"{self.replicas} forwarder{'s' if self.replicas > 1 else ''} to ready workers in turn, in place "
            "of Envoy and llm-d's endpoint picker, behind the plan's filter; a relay replaces the load "
            "balancer"
        )
        return (PlatformPart(f"Router of {release}", "stand-in", detail),)
