"""Refuses names and zones that a VPC has already: private names of endpoints, and private zones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ministack.core.responses import get_region
from ministack.services import ec2, route53
from ministack.services.cloudformation import provisioners
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_local.emulator.refusals import ENDPOINT_DOMAIN, ENDPOINT_ZONES, ZONE_EXISTS

_ENDPOINT, _ZONE = "AWS::EC2::VPCEndpoint", "AWS::Route53::HostedZone"
_PLAIN_ENDPOINT = provisioners._ec2_vpc_endpoint_create
_PLAIN_ZONE = provisioners._r53_hosted_zone_create
#: VPCs of the private zones, which ministack does not keep.
_vpcs: dict[str, frozenset[str]] = {}


def _create_endpoint(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
    """Create an endpoint whose private name and zones are free."""
    service, vpc = str(properties.get("ServiceName")), properties.get("VpcId")
    if _is_true(properties.get("PrivateDnsEnabled")):
        for each in ec2._vpc_endpoints.values():
            same = (each["VpcId"], each["ServiceName"]) == (vpc, service)
            if same and _is_true(each.get("PrivateDnsEnabled")):
                name = f"{service.rpartition('.')[2]}.{get_region()}.amazonaws.com"
                raise ENDPOINT_DOMAIN.error(domain=name, vpc=vpc)
    zones: set[str] = set()
    for subnet in properties.get("SubnetIds") or ():
        zone = (ec2._subnets.get(subnet) or {}).get("AvailabilityZone")
        if zone in zones:
            raise ENDPOINT_ZONES.error(subnet=subnet)
        zones |= {zone} if zone else set()
    return _PLAIN_ENDPOINT(logical_id, properties, stack)


def _create_zone(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
    """Create a zone whose name is free in its VPCs."""
    name = str(properties.get("Name", "")).rstrip(".") + "."
    vpcs = frozenset(str(each["VPCId"]) for each in properties.get("VPCs") or ())
    for identifier, zone in route53._zones.items():
        shared = vpcs & _vpcs.get(identifier, frozenset())
        if zone["name"] == name and shared:
            raise ZONE_EXISTS.error(vpc=min(shared), region=get_region(), zone=identifier)
    made = _PLAIN_ZONE(logical_id, properties, stack)
    _vpcs[made[0]] = vpcs
    return made


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"


def apply() -> None:
    """Apply the patch."""
    _RESOURCE_HANDLERS[_ENDPOINT]["create"] = _create_endpoint
    _RESOURCE_HANDLERS[_ZONE]["create"] = _create_zone
