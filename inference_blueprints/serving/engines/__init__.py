"""Inference engines: one module each, found by the blueprint's key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from inference_blueprints.serving.engines import vllm
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.memory import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue
from inference_blueprints.spec.types import ArgumentValue


class EngineModule(Protocol):
    """What a module of this package provides."""

    #: Arguments that a user may not set, with what to set in the blueprint instead.
    OWNED_ARGUMENTS: Mapping[str, str]

    def user_arguments(self, resolved: ResolvedWorkers) -> Mapping[str, ArgumentValue]:
        """Return the engine arguments that the blueprint gives, by name without dashes."""

    def value_message(self, name: str, value: ArgumentValue) -> str | None:
        """Return what is wrong with the value of an argument that the plan computes with, or None."""

    def insisted_length(self, resolved: ResolvedWorkers) -> int | None:
        """Return the longest request that the user asks for by argument, or None."""

    def memory(self, resolved: ResolvedWorkers) -> MemoryEstimate:
        """Return how a worker's accelerator memory is spent."""

    def size(self, resolved: ResolvedWorkers) -> Sizing:
        """Return lengths, batch sizes and KV blocks of a worker."""

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, ArgumentValue]:
        """Return a worker's arguments by name without dashes, the user's merged in."""

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        """Return a worker's environment as far as it is the engine's business."""


#: Engine module by the blueprint's key; the catalogue has an entry of the same name.
ENGINES: Mapping[str, EngineModule] = MappingProxyType({"vllm": vllm})
