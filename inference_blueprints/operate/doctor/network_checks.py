"""Compares an existing network and a certificate with the blueprint."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.types import ExistingNetwork
from inference_blueprints.spec.zones import platform_zones

_ISSUED = "ISSUED"
_REGION_OF_ARN = 3


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
