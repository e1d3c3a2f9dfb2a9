"""Checks that an existing VPC does not have the private DNS names of the platform already."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.domains import models_domain
from inference_blueprints.spec.types import ExistingNetwork
from inference_catalog.tags import PLATFORM_TAG


def private_names(context: DoctorContext) -> Iterator[CheckResult]:
    """Check the zone of the models, and the endpoint of the batch API, in an existing VPC."""
    network = context.blueprint.spec.network.existing
    if network is None:
        return
    problems = [*_models_zone(context, network), *_api_endpoint(context, network)]
    yield from problems
    if not problems:
        yield CheckResult("private DNS", "ok", f"{network.vpc_id} has none of the platform's names")


def _models_zone(context: DoctorContext, network: ExistingNetwork) -> Iterator[CheckResult]:
    """Check that no other private zone of the VPC has the name of the models' zone.

    Route 53 refuses the second one (Amazon Route 53 API Reference, CreateHostedZone,
    ConflictingDomainExists).
    """
    platform = context.blueprint.metadata.name
    domain = models_domain(platform, context.blueprint.spec.network)
    route53 = context.account.client("route53")
    answer = route53.list_hosted_zones_by_vpc(VPCId=network.vpc_id, VPCRegion=context.environment.region)
    for zone in answer["HostedZoneSummaries"]:
        if zone["Name"].rstrip(".") != domain:
            continue
        zone_id = zone["HostedZoneId"].rpartition("/")[2]
        listed = route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=zone_id)
        if {"Key": PLATFORM_TAG, "Value": platform} not in listed["ResourceTagSet"]["Tags"]:
            message = (
                f"{network.vpc_id} already has a private zone {domain} ({zone_id}); set network.domain to "
                "another name, or remove that zone from the VPC"
            )
            command = f"aws route53 get-hosted-zone --id {zone_id}"
            yield CheckResult("private DNS", "error", message, command)


def _api_endpoint(context: DoctorContext, network: ExistingNetwork) -> Iterator[CheckResult]:
    """Check that the VPC has no other endpoint with the private names of API Gateway.

    EC2 refuses the second one: "private-dns-enabled cannot be set because there is already a conflicting DNS
    domain for execute-api" (https://github.com/fortinet/fortigate-autoscale-aws/issues/43).
    """
    if context.blueprint.spec.batch is None:
        return
    filters = [
        {"Name": "vpc-id", "Values": [network.vpc_id]},
        {"Name": "service-name", "Values": [f"com.amazonaws.{context.environment.region}.execute-api"]},
    ]
    pages = context.account.client("ec2").get_paginator("describe_vpc_endpoints").paginate(Filters=filters)
    tag = {"Key": PLATFORM_TAG, "Value": context.blueprint.metadata.name}
    for endpoint in (each for page in pages for each in page["VpcEndpoints"]):
        if endpoint.get("PrivateDnsEnabled") and tag not in endpoint.get("Tags", ()):
            identifier = endpoint["VpcEndpointId"]
            message = (
                f"{network.vpc_id} already has {identifier} with the private names of API Gateway, which the "
                "batch API needs; use another VPC, or turn private DNS off there"
            )
            command = context.aws(
                f"ec2 modify-vpc-endpoint --vpc-endpoint-id {identifier} --no-private-dns-enabled"
            )
            yield CheckResult("private DNS", "error", message, command)
