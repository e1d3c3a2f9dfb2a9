"""What AWS limits and what a private network has to reach: quotas and endpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from inference_blueprints.catalog.hardware import InstanceType

_FAMILY_CLASS = re.compile(r"([a-z]+)[0-9]*")


@dataclass(frozen=True, slots=True)
class Quota:
    """One of EC2's quotas on running instances, in vCPUs of a region.

    Parameters
    ----------
    name
        Its code in Service Quotas, such as ``L-DB2E81BA``.
    quota
        Its name there.
    purchase
        Which instances it counts: ``onDemand``, which reservations are part of, or ``spot``.
    families
        Families that it counts, by their first letters, such as ``g`` for G6e, or by letters and generation,
        such as ``p5`` for P5en.
    """

    name: str
    quota: str
    purchase: Literal["onDemand", "spot"]
    families: tuple[str, ...]

    def counts(self, instance_type: InstanceType, purchase: str) -> bool:
        """Return whether an instance of a type, paid for in a way, counts towards it."""
        match = _FAMILY_CLASS.match(instance_type.family)
        counted = match is not None and not {match[0], match[1]}.isdisjoint(self.families)
        return purchase == self.purchase and counted


@dataclass(frozen=True, slots=True)
class ServiceQuota:
    """A quota of a service that batch counts towards, as accounts have it by default.

    Parameters
    ----------
    name
        The catalogue's word for it.
    service, quota
        Whose it is, and its name there.
    unit
        What it counts; ``/s`` counts a second.
    value
        How much there is, where `regions` does not say otherwise.
    adjustable
        Whether AWS raises it when asked.
    code
        In Service Quotas; empty where none is known.
    source
        The page that says so.
    regions
        How much there is, by region; None where all have the same.
    """

    name: str
    service: str
    quota: str
    unit: str
    value: float
    adjustable: bool
    code: str
    source: str
    regions: Mapping[str, float] | None = None

    def in_region(self, region: str) -> float:
        """Return how much there is in a region."""
        return (self.regions or {}).get(region, self.value)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One VPC endpoint.

    Parameters
    ----------
    name
        Its construct's id.
    service
        Last part of the service's name, such as ``ecr.api``.
    kind
        ``interface``, an address in each subnet, or ``gateway``, a route.
    needed_by
        What calls the service from inside the VPC.
    """

    name: str
    service: str
    kind: Literal["interface", "gateway"]
    needed_by: str


@dataclass(frozen=True, slots=True)
class Image:
    """A container image of an engine.

    Parameters
    ----------
    name
        Repository and tag.
    compressed_bytes
        What a node downloads; None when unknown.
    unpacked_bytes
        What it takes on a disk; None when unknown.
    """

    name: str
    compressed_bytes: int | None
    unpacked_bytes: int | None
