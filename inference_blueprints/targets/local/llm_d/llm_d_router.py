"""Llm-d's router on this machine: a stand-in in front of real ``vllm serve`` workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.serving.types import Role
from inference_blueprints.targets.local.launch import Launch
from inference_blueprints.targets.local.llm_d import picker_stand_in
from inference_blueprints.targets.local.local_frontend import LocalFrontend
from inference_blueprints.targets.local.platform_parts import PlatformPart


@dataclass(frozen=True, slots=True)
class LlmDRouter(LocalFrontend):
    """The stand-in for Envoy and the endpoint picker."""

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
        command = [sys.executable, "-I", "-m", picker_stand_in.__name__, str(port), json.dumps(roles)]
        return Launch(command, {"HOME": str(home)})

    def parts(self, release: str) -> tuple[PlatformPart, ...]:
        detail = (
            f"{self.replicas} forwarder{'s' if self.replicas > 1 else ''} to ready workers in turn, in place "
            "of Envoy and llm-d's endpoint picker; a relay replaces the load balancer"
        )
        return (PlatformPart(f"Router of {release}", "stand-in", detail),)
