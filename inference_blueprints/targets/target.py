"""What every target provides: a target runs the serving plan somewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from inference_blueprints.errors import Finding
from inference_blueprints.serving.types import ModelPlan
from inference_blueprints.spec.types import Blueprint

RenderedT = TypeVar("RenderedT")


class Target(ABC, Generic[RenderedT]):
    """Renders the serving plan for one place where it can run.

    A target renders what the plan says. It decides nothing that the plan has decided: see "Design rules" in
    ``docs/architecture.md``. The type parameter is what the target makes of one deployment: chart values on
    EKS, commands on this machine.
    """

    @classmethod
    def findings(cls, blueprint: Blueprint) -> Iterator[Finding]:  # noqa: ARG003 - for targets with limits
        """Yield what this target cannot run of a blueprint. By default, it runs everything.

        Parameters
        ----------
        blueprint
            A blueprint that may have holes: see ``inference_blueprints/spec/holes.py``.
        """
        yield from ()

    @abstractmethod
    def render(self, model: ModelPlan) -> tuple[RenderedT, ...]:
        """Return what runs each deployment of a model, in the order of the plan.

        Parameters
        ----------
        model
            The model's part of the serving plan.
        """
