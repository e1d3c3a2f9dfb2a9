"""The load balancer of engines' own servers on this machine: a stand-in in front of the workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.serving.types import Role
from inference_local.serving.direct import balancer_stand_in
from inference_local.serving.local_frontend import LocalFrontend
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.process_commands import Launch
from inference_local.serving.ready_workers import leaving_folder


@dataclass(frozen=True, slots=True)
class WorkerBalancer(LocalFrontend):
    """The stand-in for the target group of an Application Load Balancer."""

    @property
    def replicas(self) -> int:
        """Number of processes: one, whatever the number of workers."""
        return 1

    @property
    def stack(self) -> str:
        return "direct"

    @property
    def moves_streams(self) -> bool:
        return False

    def launch(self, port: int, home: Path, workers: Mapping[Role, Sequence[str]]) -> Launch:
        addresses = json.dumps([address for each in workers.values() for address in each])
        command = [sys.executable, "-I", "-m", balancer_stand_in.__name__]
        return Launch([*command, str(port), addresses, str(leaving_folder(home))], {"HOME": str(home)})

    def parts(self, release: str) -> tuple[PlatformPart, ...]:
        detail = "a forwarder to the ready worker with the fewest open requests, in place of the target group"
        return (PlatformPart(f"Load balancer of {release}", "stand-in", detail),)
