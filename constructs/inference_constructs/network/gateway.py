"""The models' load balancer as values, for stacks that add a model to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gateway:
    """The models' load balancer, as a model's stack refers to it.

    Parameters
    ----------
    vpc_id
        Where target groups are.
    listener_arn
        Listener that routes by host name.
    zone_name
        Private zone, every name of which is an alias of the load balancer.
    scheme
        ``http`` or ``https``.
    security_group_id
        Who may call.
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
