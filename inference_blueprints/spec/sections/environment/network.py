"""Rules on the network."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

import inference_catalog as catalog
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Environment, Spec
from inference_blueprints.spec.wording import duplicates, quote
from inference_contracts.errors import Finding

_PATH = ("spec", "network")

#: A VPC can have /16 to /28 (Amazon VPC User Guide, "VPC CIDR blocks"); the pods of a few nodes fill a range
#: smaller than /20.
SHORTEST_PREFIX = 16
LONGEST_PREFIX = 20
_EVERYWHERE = "0.0.0.0/0"
#: Ranges that EC2 refuses for a VPC: this network, loopback, link-local, multicast and reserved ranges
#: (RFC 6890; Amazon EC2 API, CreateVpc).
_UNUSABLE = tuple(
    IPv4Network(each) for each in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
)


@rule
def new_or_existing(spec: Spec) -> Iterator[Finding]:
    """Check that `cidr` is not given for an existing VPC."""
    network = spec.network
    if network.cidr and network.existing:
        yield Finding(
            (*_PATH, "cidr"), "got both 'cidr' and 'existing'; remove 'cidr', or 'existing' for a new VPC"
        )


@rule
def range_is_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the range of the new VPC is valid and has an allowed size."""
    network = spec.network
    if network.cidr is None:
        return
    path = (*_PATH, "cidr")
    fault = _fault(network.cidr)
    if fault:
        yield Finding(path, fault)
    elif not SHORTEST_PREFIX <= IPv4Network(network.cidr).prefixlen <= LONGEST_PREFIX:
        yield Finding(
            path, f"got {quote(network.cidr)}, allowed sizes are /{SHORTEST_PREFIX} to /{LONGEST_PREFIX}"
        )
    elif any(IPv4Network(network.cidr).overlaps(each) for each in _UNUSABLE):
        message = (
            f"got {quote(network.cidr)}, which AWS does not allow for a VPC; use a private range "
            "such as 10.0.0.0/16"
        )
        yield Finding(path, message)


@rule
def range_is_private(spec: Spec) -> Iterator[Finding]:
    """Check that the range of the new VPC is not one of the internet's.

    AWS allows it, and recommends private ranges (Amazon VPC User Guide, "VPC CIDR blocks").
    """
    cidr = spec.network.cidr
    if cidr and not _fault(cidr) and IPv4Network(cidr).is_global:
        message = (
            f"{quote(cidr)} belongs to the internet: the platform cannot reach the hosts that have these "
            "addresses there; use a private range such as 10.0.0.0/16, unless the range is yours"
        )
        yield Finding((*_PATH, "cidr"), message, "warning")


@rule
def existing_range_is_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the range of the existing VPC is valid."""
    network = spec.network
    fault = _fault(network.existing.vpc_cidr) if network.existing else ""
    if fault:
        yield Finding((*_PATH, "existing", "vpcCidr"), fault)


@rule
def sources_are_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the ranges that may call the models are valid, and not all addresses."""
    for index, cidr in usable(spec.network.source_cidrs or ()):
        path = (*_PATH, "sourceCidrs", index)
        fault = _fault(cidr)
        if fault:
            yield Finding(path, fault)
        elif cidr == _EVERYWHERE:
            message = f"{_EVERYWHERE} admits everyone who can reach the VPC; list the ranges of the callers"
            yield Finding(path, message, "warning")


@rule
def subnets_match_zones(spec: Spec) -> Iterator[Finding]:
    """Check that each subnet of an existing VPC has a zone."""
    network = spec.network
    if network.existing is None:
        return
    zones = spec.environment.availability_zones
    subnets = len(network.existing.private_subnet_ids)
    if zones is None:
        message = f"is missing; list the zones of the {subnets} subnets of `network.existing`, in their order"
        yield Finding(("spec", "environment", "availabilityZones"), message)
    elif len(zones) != subnets:
        message = (
            f"got {subnets} subnets, `environment.availabilityZones` has {len(zones)}; give each "
            "subnet one zone"
        )
        yield Finding((*_PATH, "existing", "privateSubnetIds"), message)


@rule
def subnets_differ(spec: Spec) -> Iterator[Finding]:
    """Check that no subnet is named twice."""
    network = spec.network
    for index, subnet in duplicates(network.existing.private_subnet_ids if network.existing else ()):
        path = (*_PATH, "existing", "privateSubnetIds", index)
        yield Finding(path, f"got {quote(subnet)} twice; name each subnet once")


@rule
def certificate_has_a_domain(spec: Spec) -> Iterator[Finding]:
    """Check that a certificate comes with its domain."""
    network = spec.network
    if network.certificate_arn and network.domain is None:
        message = "is missing: 'certificateArn' requires the domain of the certificate"
        yield Finding((*_PATH, "domain"), message)


@rule
def certificate_is_in_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that the certificate is in the region of the platform."""
    arn = spec.network.certificate_arn
    if arn and is_in_wrong_region(arn, spec.environment):
        yield Finding(
            (*_PATH, "certificateArn"), in_wrong_region("certificate", arn, spec.environment.region)
        )


@rule
def connections_are_encrypted(spec: Spec) -> Iterator[Finding]:
    """Check that connections to the models are encrypted."""
    if spec.network.certificate_arn is None:
        message = (
            "models answer over unencrypted HTTP inside the VPC; set 'certificateArn' and 'domain' for HTTPS"
        )
        yield Finding(_PATH, message, "warning")


def is_in_wrong_region(arn: str, environment: Environment) -> bool:
    """Return whether an ARN is in another region than the platform; False if that region is unknown."""
    return environment.region in catalog.regions() and _region(arn) != environment.region


def in_wrong_region(kind: str, arn: str, region: str) -> str:
    """Return the message for an ARN in another region than the platform."""
    return f"got a {kind} in {quote(_region(arn))}, it must be in {quote(region)} like `environment.region`"


def _region(arn: str) -> str:
    return arn.split(":")[3]


def _fault(cidr: str) -> str:
    """Return the message for an invalid IPv4 range; empty if it is valid."""
    try:
        IPv4Network(cidr)
    except ValueError:
        try:
            network = IPv4Network(cidr, strict=False)
        except ValueError:
            return f"got {quote(cidr)}, expected an IPv4 range such as 10.0.0.0/16"
        return f"got {quote(cidr)}, which is an address and not a range; did you mean '{network}'?"
    return ""
