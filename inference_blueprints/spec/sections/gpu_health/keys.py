"""GPU health: broken and slow GPUs are found, and their nodes are replaced."""

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
    max_repairing_percent: int = Field(default=0, ge=0, le=50)
    """Largest share of a pool's nodes that are rebooted or replaced at the same time, rounded down. One
    always may be, and with the default no more."""
    replacements_per_hour: int = Field(default=4, ge=1, le=100)
    """Largest number of repairs, reboots too, that start within an hour, on the whole platform."""
    reboots_per_node_per_day: int = Field(default=0, ge=0, le=5)
    """How often a node is rebooted within a day if a reboot mends its fault, before it is replaced. With 0,
    the default, no node is rebooted. Where Karpenter repairs the nodes, any other number turns on its own
    reboots, which are alpha, and Karpenter decides how often."""
    slow_gpus: bool = True
    """Whether workers are also compared with their peers, so that slow GPUs are found beside broken ones."""
