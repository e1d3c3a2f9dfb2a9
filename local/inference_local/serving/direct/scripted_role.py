"""Scripted servers in place of the workers of an engine that this machine cannot run or simulate."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from inference_blueprints.serving.engines.serving_engine import OwnServer
from inference_local.serving.direct import scripted_server
from inference_local.serving.direct.scripted_server import ScriptedSettings
from inference_local.serving.local_deployment import LocalWorkers, WorkerPlace
from inference_local.serving.platform_parts import State
from inference_local.serving.process_commands import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRole(LocalWorkers):
    """Scripted servers, one per worker."""

    engine: str
    """The engine that they replace, by the blueprint's key."""
    server: OwnServer
    """The server that they replace."""
    answer_tokens: int
    """Words of an answer if the request has no limit."""
    most_pixels: int | None = None
    """Most pixels of an image. None if the model writes text."""

    @property
    def state(self) -> State:
        return "stubbed"

    @property
    def detail(self) -> str:
        if self.most_pixels is not None:
            return (
                f"{self.replicas} scripted servers in place of {self.engine}, which cannot run here: no "
                "model runs, and an image takes 0.2 s, so times give no throughput or price"
            )
        return (
            f"{self.replicas} scripted servers in place of {self.engine}, which cannot run here: the same "
            "words at the same pace, so times give no throughput or price"
        )

    @property
    def answers(self) -> str:
        if self.most_pixels is not None:
            return "no weights: images are bands of colours that follow from prompt and seed"
        return "no weights: answers are scripted words, and a word counts as a token"

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:  # noqa: ARG002 -- one per process
        settings = ScriptedSettings(
            address=place.address,
            port=self.planned.ports[0].number,
            model=model,
            answer_tokens=self.answer_tokens,
            running=self.server.running,
            waiting=self.server.waiting,
            requests=self.server.requests.name,
            most_pixels=self.most_pixels,
            aliases=self.aliases,
        )
        command = [sys.executable, "-I", "-m", scripted_server.__name__, settings.as_text()]
        return Launch(command, {"HOME": str(place.home)})
