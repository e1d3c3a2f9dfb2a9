"""The models' load balancer as plain values, for stacks that add a model to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gateway:
    """The models' load balancer, for references from other stacks.

    Parameters
    ----------
    vpc_id
        VPC of the target groups.
    listener_arn
        Listener that routes by host name.
    zone_name
        Private zone. Each name in it is an alias of the load balancer.
    scheme
        ``http`` or ``https``.
    security_group_id
        Security group whose rules admit callers.
    """

    vpc_id: str
    listener_arn: str
    zone_name: str
    scheme: str
    security_group_id: str

    @property
    def port(self) -> int:
        """TCP port of the listener."""
        return 443 if self.scheme == "https" else 80
