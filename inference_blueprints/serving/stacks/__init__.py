"""Serving stacks: what stands before the engines. One module each, found by the blueprint's key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import dynamo, llm_d
from inference_blueprints.serving.types import EndpointPicker, Process


class StackModule(Protocol):
    """What a module of this package provides."""

    #: Engines that the stack runs, by the blueprint's key, in its own words.
    FRAMEWORKS: Mapping[str, str]

    #: The chart of its deployments, by the key of ``helm_values/charts.yaml``.
    CHART: str

    #: Engine arguments that a user may not set because the stack does, with the reason.
    OWNED_ARGUMENTS: Mapping[str, str]

    #: Owners of flags, in the catalogue's words, that its workers are not started with.
    FOREIGN_FLAGS: tuple[str, ...]

    def service_account(self, release: str) -> str:
        """Return the Kubernetes service account of a deployment's workers."""

    def picker(self, roles: tuple[ResolvedWorkers, ...]) -> EndpointPicker | None:
        """Return what llm-d's router chooses by; None for a stack without it."""

    def processes(self, roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
        """Return the processes of a deployment with workers of these roles, its entry point first."""


#: Stack module by the blueprint's key.
STACKS: Mapping[str, StackModule] = MappingProxyType({"dynamo": dynamo, "llmD": llm_d})
