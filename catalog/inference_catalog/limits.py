"""AWS quotas, VPC endpoints, and container images of engines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from inference_catalog.hardware import InstanceType

_FAMILY_CLASS = re.compile(r"([a-z]+)[0-9]*")


@dataclass(frozen=True, slots=True)
class Quota:
    """One of EC2's quotas on running instances, in vCPUs per region."""

    name: str
    """Code in Service Quotas, such as ``L-DB2E81BA``."""
    quota: str
    """Name in Service Quotas."""
    purchase: Literal["onDemand", "spot"]
    """Counted instances: ``onDemand``, which includes reservations, or ``spot``."""
    families: tuple[str, ...]
    """Counted families, by their first letters, such as ``g`` for G6e, or by letters and generation, such as
    ``p5`` for P5en."""

    def counts(self, instance_type: InstanceType, purchase: str) -> bool:
        """Return whether an instance of this type and purchase counts towards the quota."""
        match = _FAMILY_CLASS.match(instance_type.family)
        counted = match is not None and not {match[0], match[1]}.isdisjoint(self.families)
        return purchase == self.purchase and counted


@dataclass(frozen=True, slots=True)
class ServiceQuota:
    """A quota of a service, with its default value."""

    name: str
    """The catalogue's key."""
    service: str
    """The service."""
    quota: str
    """The name of the quota in Service Quotas."""
    unit: str
    """Counted unit. ``/s`` means per second."""
    value: float
    """Default value, unless `regions` has another."""
    adjustable: bool
    """Whether AWS raises it on request."""
    code: str
    """Code in Service Quotas; empty if unknown."""
    source: str
    """Page that documents the value."""
    regions: Mapping[str, float] | None = None
    """Default value by region; None if it is the same everywhere."""

    def in_region(self, region: str) -> float:
        """Return the default value in a region."""
        return (self.regions or {}).get(region, self.value)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One VPC endpoint."""

    name: str
    """Construct ID."""
    service: str
    """Last part of the service's name, such as ``ecr.api``."""
    kind: Literal["interface", "gateway"]
    """``interface`` has an address in each subnet; ``gateway`` is a route."""
    needed_by: str
    """Callers of the service inside the VPC."""


@dataclass(frozen=True, slots=True)
class Image:
    """A container image of an engine."""

    name: str
    """Repository and tag."""
    compressed_bytes: int | None
    """Download size; None if unknown."""
    unpacked_bytes: int | None
    """Size on a disk; None if unknown."""
