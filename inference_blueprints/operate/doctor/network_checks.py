"""Checks of the network: zones, an existing VPC, endpoints, addresses, private names and the certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.capacity_checks import granted_quota
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.derived import models_domain, platform_zones
from inference_blueprints.spec.types import ExistingNetwork
from inference_catalog.tags import PLATFORM_TAG

_ISSUED = "ISSUED"
_REGION_OF_ARN = 3
_CHECK = "VPC endpoints"
#: The private REST API of batch.
_BATCH_API = "execute-api"
#: EKS requires subnets in two zones (Amazon EKS User Guide, "Subnet requirements for clusters").
_MIN_ZONES = 2


def existing_network(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare an existing VPC and its subnets with the blueprint."""
    network = context.blueprint.spec.network.existing
    if network is None:
        return
    ec2 = context.account.client("ec2")
    try:
        [vpc] = ec2.describe_vpcs(VpcIds=[network.vpc_id])["Vpcs"]
        subnets = ec2.describe_subnets(SubnetIds=network.private_subnet_ids)["Subnets"]
    except ClientError as error:
        if not error.response["Error"]["Code"].endswith(".NotFound"):
            raise
        command = context.aws("ec2 describe-subnets --query 'Subnets[].[VpcId,SubnetId,AvailabilityZone]'")
        message = f"{error.response['Error']['Message']}; use ids that exist"
        yield CheckResult("network", "error", message, command)
        return
    problems = [*_of_vpc(context, ec2, network, vpc), *_of_subnets(context, network, subnets)]
    yield from problems
    if not problems:
        count = len(subnets)
        yield CheckResult("network", "ok", f"{network.vpc_id} and its {count} subnets match the blueprint")


def _of_vpc(
    context: DoctorContext, ec2: Any, network: ExistingNetwork, vpc: dict[str, Any]
) -> Iterator[CheckResult]:
    """Check the range and the DNS attributes of the VPC."""
    ranges = [each["CidrBlock"] for each in vpc.get("CidrBlockAssociationSet", [])] or [vpc["CidrBlock"]]
    if network.vpc_cidr not in ranges:
        message = f"{network.vpc_id} has {', '.join(ranges)}, not {network.vpc_cidr}; correct vpcCidr"
        yield CheckResult("network", "error", message)
    for attribute in ("enableDnsSupport", "enableDnsHostnames"):
        answer = ec2.describe_vpc_attribute(VpcId=network.vpc_id, Attribute=attribute)
        if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
            option = "--enable-dns-support" if attribute == "enableDnsSupport" else "--enable-dns-hostnames"
            command = context.aws(f"ec2 modify-vpc-attribute --vpc-id {network.vpc_id} {option}")
            message = f"{network.vpc_id}: {attribute} is off; the models' DNS names need it"
            yield CheckResult("network", "error", message, command)


def _of_subnets(
    context: DoctorContext, network: ExistingNetwork, subnets: list[dict[str, Any]]
) -> Iterator[CheckResult]:
    """Check VPC and zone of each subnet, in the blueprint's order."""
    by_id = {subnet["SubnetId"]: subnet for subnet in subnets}
    for subnet_id, zone in zip(network.private_subnet_ids, platform_zones(context.environment), strict=True):
        subnet = by_id[subnet_id]
        if subnet["VpcId"] != network.vpc_id:
            message = (
                f"{subnet_id} is in {subnet['VpcId']}, not in {network.vpc_id}; use a subnet of that VPC"
            )
            yield CheckResult("network", "error", message)
        if subnet["AvailabilityZone"] != zone:
            message = f"{subnet_id} is in {subnet['AvailabilityZone']}, not in {zone}; correct the order"
            yield CheckResult("network", "error", message)


def certificate(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that the certificate is issued, is in the region, and covers the models' names."""
    network = context.blueprint.spec.network
    arn = network.certificate_arn
    if arn is None:
        return
    region = arn.split(":")[_REGION_OF_ARN]
    request = context.aws(
        f"acm request-certificate --domain-name '*.{network.domain}' --validation-method DNS"
    )
    if region != context.environment.region:
        message = f"it is in {region}, the load balancer needs one in {context.environment.region}"
        yield CheckResult("certificate", "error", message, request)
        return
    acm = context.account.client("acm")
    try:
        found = acm.describe_certificate(CertificateArn=arn)["Certificate"]
    except acm.exceptions.ResourceNotFoundException:
        yield CheckResult("certificate", "error", f"{arn} does not exist", request)
        return
    if found["Status"] != _ISSUED:
        command = context.aws(f"acm describe-certificate --certificate-arn {arn}")
        message = f"it is {found['Status']}, not {_ISSUED}; create the DNS records that validate it"
        yield CheckResult("certificate", "error", message, command)
    names = [found["DomainName"], *found.get("SubjectAlternativeNames", [])]
    hosts = [f"{model.name}.{network.domain}" for model in context.blueprint.spec.models]
    uncovered = [host for host in hosts if not any(_covers(name, host) for name in names)]
    if uncovered:
        message = f"it covers {', '.join(dict.fromkeys(names))}, not {', '.join(uncovered)}"
        yield CheckResult("certificate", "error", message, request)
    elif found["Status"] == _ISSUED:
        yield CheckResult("certificate", "ok", f"issued for {', '.join(dict.fromkeys(names))}")


def _covers(name: str, host: str) -> bool:
    """Whether a certificate's name covers a host; a star stands for one label (RFC 6125)."""
    return fnmatchcase(host, name) and host.count(".") == name.count(".")


def elastic_addresses(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the free addresses with the NAT gateways of a new VPC, which has one per zone."""
    if context.blueprint.spec.network.existing:
        return
    quota = catalog.network_quotas()["ec2.elasticAddresses"]
    granted = granted_quota(context.account.client("service-quotas"), quota.code)
    if granted is None:
        message = f"{quota.quota} ({quota.code}): AWS does not have this quota in this region"
        yield CheckResult("Elastic IPs", "unknown", message)
        return
    allocated = context.account.client("ec2").describe_addresses()["Addresses"]
    tag = {"Key": PLATFORM_TAG, "Value": context.blueprint.metadata.name}
    own = sum(tag in address.get("Tags", ()) for address in allocated)
    gateways = len(platform_zones(context.environment))
    needed = max(0, gateways - own)
    message = (
        f"{quota.quota}: {len(allocated):,} of {granted:,.0f} are in use, the platform's {gateways} NAT "
        f"gateways need {needed} more"
    )
    if len(allocated) + needed <= granted:
        yield CheckResult("Elastic IPs", "ok", message)
        return
    request = context.aws(
        f"service-quotas request-service-quota-increase --service-code {quota.service} "
        f"--quota-code {quota.code} --desired-value {len(allocated) + needed}"
    )
    yield CheckResult("Elastic IPs", "error", f"{message}; release some, or ask for more", request)


def subnet_addresses(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the free addresses of an existing VPC's subnets with those of all nodes and their pods."""
    network = context.blueprint.spec.network.existing
    if network is None:
        return
    ec2 = context.account.client("ec2")
    subnets = ec2.describe_subnets(SubnetIds=network.private_subnet_ids)["Subnets"]
    free = sum(subnet["AvailableIpAddressCount"] for subnet in subnets)
    needed = summarise(context.blueprint, build_plan(context.blueprint))[ADDRESSES].needed
    message = (
        f"{free:,} addresses are free in {len(subnets)} subnets; the platform's nodes and pods need up to "
        f"{needed:,}"
    )
    if free >= needed:
        yield CheckResult("subnet addresses", "ok", message)
        return
    command = context.aws(
        "ec2 describe-subnets --query 'Subnets[].[SubnetId,AvailableIpAddressCount]' "
        f"--subnet-ids {' '.join(network.private_subnet_ids)}"
    )
    message += "; use larger subnets, or lower nodes.max; a platform that is deployed already holds its own"
    yield CheckResult("subnet addresses", "warning", message, command)


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


def zones(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that the account has the platform's zones, and that EKS accepts subnets in them."""
    ids = _zone_ids(context)
    refused = catalog.zone_ids_without_control_plane()
    wanted = platform_zones(context.environment)
    problems = [
        f"this account has no zone {zone}"
        if zone not in ids
        else f"{zone} is {ids[zone]} in this account, where EKS accepts no control plane"
        for zone in wanted
        if ids.get(zone) is None or ids[zone] in refused
    ]
    if not problems:
        names = ", ".join(f"{zone} ({ids[zone]})" for zone in wanted)
        yield CheckResult("zones", "ok", names)
        return
    usable = [zone for zone, zone_id in ids.items() if zone_id not in refused]
    yield CheckResult("zones", "error", f"{'; '.join(problems)}; {_advice(context, wanted, usable)}")


def _zone_ids(context: DoctorContext) -> Mapping[str, str]:
    """Return the account's zones of the region, without Local Zones and Wavelength Zones: ID by name."""
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    answer = context.account.client("ec2").describe_availability_zones(Filters=filters)
    found = {zone["ZoneName"]: zone["ZoneId"] for zone in answer["AvailabilityZones"]}
    return dict(sorted(found.items()))


def _advice(context: DoctorContext, wanted: Sequence[str], usable: Sequence[str]) -> str:
    """Return what to write into the blueprint: its usable zones, and others in place of the rest."""
    if context.blueprint.spec.network.existing:
        return "use subnets in other zones, and name these in environment.availabilityZones"
    kept = [zone for zone in wanted if zone in usable]
    chosen = [*kept, *(zone for zone in usable if zone not in kept)][: len(wanted)]
    if len(chosen) < _MIN_ZONES:
        return "a platform needs two zones; use another region"
    return f"set environment.availabilityZones: [{', '.join(sorted(chosen))}]"
