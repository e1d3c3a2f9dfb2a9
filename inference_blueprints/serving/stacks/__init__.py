"""Serving stacks: what stands before the engines. One module each, found by the blueprint's key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import dynamo
from inference_blueprints.serving.types import Process


class StackModule(Protocol):
    """What a module of this package provides."""

    #: Engines that the stack runs, by the blueprint's key, in its own words.
    FRAMEWORKS: Mapping[str, str]

    def processes(self, roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
        """Return the processes of a deployment with workers of these roles, its entry point first."""


#: Stack module by the blueprint's key.
STACKS: Mapping[str, StackModule] = MappingProxyType({"dynamo": dynamo})
