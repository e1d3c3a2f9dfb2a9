"""An objective, compared with the plan's own figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ObjectiveCheck:
    """One latency objective of a model, and what the plan expects of a deployment.

    Parameters
    ----------
    model, deployment
        The deployment.
    objective
        Key of the objective in the blueprint.
    objective_ms
        The objective, in milliseconds.
    planned_ms
        Figure of the plan (simulated), in milliseconds; None without a latency profile. It is a mean without
        waiting in a queue, so the 90th percentile is higher.
    """

    model: str
    deployment: str
    objective: Literal["timeToFirstTokenP90Ms", "timePerOutputTokenP90Ms"]
    objective_ms: float
    planned_ms: float | None

    @property
    def is_missed(self) -> bool | None:
        """Whether the plan's own figure is above the objective; None if there is no figure."""
        return None if self.planned_ms is None else self.planned_ms > self.objective_ms
