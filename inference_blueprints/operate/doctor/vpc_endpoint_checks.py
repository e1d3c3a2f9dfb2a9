"""Checks that the region offers the VPC endpoints that the platform creates, in each of its zones."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.zones import platform_zones

_CHECK = "VPC endpoints"
#: The private REST API of batch.
_BATCH_API = "execute-api"


def vpc_endpoints(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the services of the platform's endpoints with the region's, and their zones with its zones.

    A new VPC has all endpoints of the catalogue, an existing one only that of the batch API. EC2 refuses an
    endpoint in a zone without its service (Amazon EC2 API Reference, DescribeVpcEndpointServices).
    """
    wanted = _wanted(context)
    if not wanted:
        return
    region, zones = context.environment.region, platform_zones(context.environment)
    names = {f"com.amazonaws.{region}.{service}": needed_by for service, needed_by in wanted.items()}
    offered = _offered(context, list(names))
    problems = 0
    for name, needed_by in names.items():
        absent = [zone for zone in zones if zone not in offered.get(name, ())]
        if not absent:
            continue
        problems += 1
        where = region if name not in offered else ", ".join(absent)
        message = f"{name} is not offered in {where}; the platform needs it for {needed_by}"
        advice = "use another region" if name not in offered else "name other environment.availabilityZones"
        command = context.aws(f"ec2 describe-vpc-endpoint-services --service-names {name}")
        yield CheckResult(_CHECK, "error", f"{message}; {advice}", command)
    if not problems:
        yield CheckResult(_CHECK, "ok", f"{len(names)} services are offered in {', '.join(zones)}")


def _wanted(context: DoctorContext) -> dict[str, str]:
    """Return the services of the platform's endpoints, and what needs each."""
    new_vpc = context.blueprint.spec.network.existing is None
    wanted = {each.service: each.needed_by for each in catalog.endpoints().values()} if new_vpc else {}
    if context.blueprint.spec.batch is not None:
        wanted[_BATCH_API] = "the batch API"
    return wanted


def _offered(context: DoctorContext, names: list[str]) -> dict[str, set[str]]:
    """Return the zones of each service that the region offers."""
    filters = [{"Name": "service-name", "Values": names}]
    pages = context.account.client("ec2").get_paginator("describe_vpc_endpoint_services")
    zones: dict[str, set[str]] = {}
    for page in pages.paginate(Filters=filters):
        for service in page["ServiceDetails"]:
            # A service may have an entry for each type of endpoint.
            zones.setdefault(service["ServiceName"], set()).update(service.get("AvailabilityZones", ()))
    return zones
