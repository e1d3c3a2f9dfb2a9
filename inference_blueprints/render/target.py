"""The base class of targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from inference_blueprints.serving.types import ModelPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

RenderedT = TypeVar("RenderedT")


class Target(ABC, Generic[RenderedT]):
    """Renders the serving plan for one place where it can run.

    A target renders the plan and does not change its decisions: see "Design rules" in
    ``docs/architecture.md``. The type parameter is the rendered form of one deployment: chart values on EKS,
    processes on this machine.
    """

    @classmethod
    def findings(cls, blueprint: Blueprint) -> Iterator[Finding]:  # noqa: ARG003 - for targets with limits
        """Yield a finding for each part of a blueprint that this target cannot run. By default, it runs all.

        blueprint: A blueprint that may have invalid values: see
        ``inference_blueprints/spec/invalid_values.py``.
        """
        yield from ()

    @classmethod
    def planned_findings(cls, blueprint: Blueprint) -> Iterator[Finding]:  # noqa: ARG003 - as above
        """Yield a finding for each part of the serving plan that this target cannot run. By default, none.

        blueprint: A blueprint without errors and invalid values.
        """
        yield from ()

    @abstractmethod
    def render(self, model: ModelPlan) -> tuple[RenderedT, ...]:
        """Return each deployment of a model in rendered form, in the order of the plan.

        model: The model's part of the serving plan.
        """
