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
    dns_name, canonical_zone_id
        What the model's name is an alias of.
    zone_id, zone_name
        Private zone of the models' names.
    scheme
        ``http`` or ``https``.
    """

    vpc_id: str
    listener_arn: str
    dns_name: str
    canonical_zone_id: str
    zone_id: str
    zone_name: str
    scheme: str
