"""GPU health: broken and slow GPUs are found, and their nodes are replaced."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.section import Section
from inference_contracts.health_names import HealthAction


class GpuHealth(Section):
    """Looks for broken and slow GPUs, and replaces their nodes in pools with `repairedBy: gpuHealth`."""

    action: HealthAction = "observe"
    """Whether nodes are replaced (`replace`), or decisions are only recorded (`observe`)."""
    max_unhealthy_percent: int = Field(default=5, ge=1, le=50)
    """Largest share of a pool's nodes that may be unhealthy. Above it, nothing is replaced in the pool, and
    people are told. One node may always be, and two in a pool of three or more."""
    replacements_per_hour: int = Field(default=4, ge=1, le=100)
    """Largest number of replacements that start within an hour, on the whole platform."""
    slow_gpus: bool = True
    """Whether workers are also compared with their peers, so that slow GPUs are found beside broken ones."""
