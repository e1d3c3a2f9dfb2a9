"""Elastic Fabric Adapters: their network cards on an instance type, and their number per accelerator.

Source: AWS, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards"
(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from inference_catalog.hardware import InstanceType

#: Kubernetes resource for one interface. The device plug-in provides it.
EFA_RESOURCE = "vpc.amazonaws.com/efa"


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network interface that an instance starts with."""

    network_card: int
    device: int
    """`network_card`, `device`: Indexes, from 0."""
    kind: Literal["interface", "efa-only"]
    """``interface`` has an IP address; ``efa-only`` has none."""


def first_card_has_efa(instance_type: InstanceType) -> bool:
    """Return whether the card of the primary interface also has EFA. On p6-b300 that card has only IP."""
    return instance_type.efa_interfaces == instance_type.network_cards


def efa_layout(instance_type: InstanceType) -> tuple[NetworkInterface, ...]:
    """Return the interfaces that give an instance its full EFA bandwidth with one IP address.

    The primary interface is never EFA-only. If its card has EFA, that is the card's second device.

    Parameters
    ----------
    instance_type
        An instance type with EFA.

    Returns
    -------
    tuple[NetworkInterface, ...]
        The primary interface first, then one EFA interface per card.
    """
    on_first_card = (NetworkInterface(0, 1, "efa-only"),) if first_card_has_efa(instance_type) else ()
    others = (NetworkInterface(card, 0, "efa-only") for card in range(1, instance_type.network_cards))
    return (NetworkInterface(0, 0, "interface"), *on_first_card, *others)


def efa_layouts_are_one(types: Iterable[InstanceType]) -> bool:
    """Return whether the types have the same network cards, so that one list of interfaces fits all."""
    return len({efa_layout(instance_type) for instance_type in types}) == 1


def efa_share(instance_type: InstanceType, accelerators: int) -> int:
    """Return the number of whole EFA interfaces for this many of a node's accelerators."""
    if not instance_type.accelerator_count:
        return 0
    return instance_type.efa_interfaces * accelerators // instance_type.accelerator_count
