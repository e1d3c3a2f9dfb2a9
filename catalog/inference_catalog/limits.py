"""What limits a platform: AWS quotas, VPC endpoints, NAT gateways, fleets, and versions of Kubernetes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from inference_catalog.entry_builder import build_entry
from inference_catalog.hardware import InstanceType
from inference_contracts.records import dataclass
from inference_contracts.units import GB

_DATA: Final = Path(__file__).resolve().parent / "data"
_SUPPORT_ENDS: Final = _DATA / "support_ends.json"
_HUB_LIMITS: Final = _DATA / "hub_limits.json"

# Limits that decide how many clusters and accounts a fleet needs.


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """One limit."""

    name: str
    """The catalogue's key."""
    limit: str
    """What is limited, in AWS's words where it is a quota."""
    scope: Literal["cell", "account"]
    """What it holds for: ``cell`` is one cluster in its own VPC, ``account`` one account in one region."""
    counts: str
    """What is counted: a field of the use of a fleet."""
    unit: str
    """Counted unit. ``/s`` means per second."""
    value: float
    """Default value."""
    most: float | None
    """The most that AWS documents. None if it is raised on request and no ceiling is documented."""
    code: str
    """Code in Service Quotas; empty if it is none or unknown."""
    source: str
    """Page that documents the value."""


# Support of Kubernetes versions by Amazon EKS.


@dataclass(frozen=True, slots=True)
class KubernetesSupport:
    """A Kubernetes version that the library is made for."""

    name: str
    """Minor version, such as ``1.35``."""
    standard_support_ends: str
    extended_support_ends: str
    """`standard_support_ends`, `extended_support_ends`: Dates on which EKS ends each kind of support, such as
    ``2027-03-27``."""
    scheduler_tag: str
    """Tag of Amazon EKS Distro's image of kube-scheduler, for a scheduler beside that of EKS."""


# Ends of support of what else platforms run on.


@dataclass(frozen=True, slots=True)
class SupportEnd:
    """Until when a pinned version is supported."""

    name: str
    """Name of the part, such as ``Apache Kafka on Amazon MSK``."""
    version: str
    """Pinned version."""
    ends: str | None
    """Date, such as ``2029-06-30``; None if none is published."""
    then: str
    """What happens then."""
    section: str
    """Key of the blueprint's ``spec`` that uses it; empty if no key decides."""
    source: str
    """Page that states it."""


@cache
def support_ends() -> tuple[SupportEnd, ...]:
    """Return the ends of support that are recorded, with those for which no date is published."""
    entries = json.loads(_SUPPORT_ENDS.read_text(encoding="utf-8"))["ends"]
    return tuple(
        build_entry(SupportEnd, {"name": name, **each}, _SUPPORT_ENDS) for name, each in entries.items()
    )


# What the Hugging Face Hub answers.


@dataclass(frozen=True, slots=True)
class HubLimits:
    """Limits of the Hub, and what a download asks of it."""

    source: str
    date: str
    """`source`, `date`: Pages of the figures, and when they were read."""
    anonymous_requests: int
    user_requests: int
    """`anonymous_requests`, `user_requests`: Requests for files in a window, of an address without a token
    and of a user with one. Beyond them the Hub answers 429."""
    window_minutes: int
    """Length of the window."""
    file_gb: int
    """Largest size of a file of weights, in GB."""
    requests_per_file: int
    """Requests with which a file is downloaded."""

    def requests(self, size_bytes: int) -> int:
        """Return the least number of requests with which weights of a size are downloaded once.

        Parameters
        ----------
        size_bytes
            Size of the weights, in bytes.
        """
        return self.requests_per_file * -(-size_bytes // (self.file_gb * GB))


@cache
def hub_limits() -> HubLimits:
    """Return the limits of the Hugging Face Hub."""
    return build_entry(HubLimits, json.loads(_HUB_LIMITS.read_text(encoding="utf-8")), _HUB_LIMITS)


#: "A NAT gateway supports 5 Gbps of bandwidth and automatically scales up to 100 Gbps"
#: (https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html).
NAT_GATEWAY_MAXIMUM_MBPS = 100_000


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
