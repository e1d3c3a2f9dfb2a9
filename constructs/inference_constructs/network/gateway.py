"""The models' load balancer as plain values, for stacks that add a model to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gateway:
    """The models' load balancer, for references from other stacks."""

    vpc_id: str
    """VPC of the target groups."""
    listener_arn: str
    """Listener that routes by host name."""
    zone_name: str
    """Private zone. Each name in it is an alias of the load balancer."""
    scheme: str
    """``http`` or ``https``."""
    security_group_id: str
    """Security group whose rules admit callers."""

    @property
    def port(self) -> int:
        """TCP port of the listener."""
        return 443 if self.scheme == "https" else 80
