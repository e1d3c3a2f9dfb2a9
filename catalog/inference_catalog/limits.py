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
    """One of EC2's quotas on running instances, in vCPUs per region.

    Parameters
    ----------
    name
        Code in Service Quotas, such as ``L-DB2E81BA``.
    quota
        Name in Service Quotas.
    purchase
        Counted instances: ``onDemand``, which includes reservations, or ``spot``.
    families
        Counted families, by their first letters, such as ``g`` for G6e, or by letters and generation, such
        as ``p5`` for P5en.
    """

    name: str
    quota: str
    purchase: Literal["onDemand", "spot"]
    families: tuple[str, ...]

    def counts(self, instance_type: InstanceType, purchase: str) -> bool:
        """Return whether an instance of this type and purchase counts towards the quota."""
        match = _FAMILY_CLASS.match(instance_type.family)
        counted = match is not None and not {match[0], match[1]}.isdisjoint(self.families)
        return purchase == self.purchase and counted


@dataclass(frozen=True, slots=True)
class ServiceQuota:
    """A quota of a service, with its default value.

    Parameters
    ----------
    name
        The catalogue's key.
    service, quota
        The service, and the name of the quota in Service Quotas.
    unit
        Counted unit. ``/s`` means per second.
    value
        Default value, unless `regions` has another.
    adjustable
        Whether AWS raises it on request.
    code
        Code in Service Quotas; empty if unknown.
    source
        Page that documents the value.
    regions
        Default value by region; None if it is the same everywhere.
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
        """Return the default value in a region."""
        return (self.regions or {}).get(region, self.value)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One VPC endpoint.

    Parameters
    ----------
    name
        Construct ID.
    service
        Last part of the service's name, such as ``ecr.api``.
    kind
        ``interface`` has an address in each subnet; ``gateway`` is a route.
    needed_by
        Callers of the service inside the VPC.
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
        Download size; None if unknown.
    unpacked_bytes
        Size on a disk; None if unknown.
    """

    name: str
    compressed_bytes: int | None
    unpacked_bytes: int | None
