"""Llm-d's router on this machine: the plan's filter and a stand-in before real ``vllm serve`` workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.serving.types import Role
from inference_local.serving.launch import Launch
from inference_local.serving.llm_d import picker_stand_in
from inference_local.serving.local_frontend import LocalFrontend
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.process_commands import environment


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
