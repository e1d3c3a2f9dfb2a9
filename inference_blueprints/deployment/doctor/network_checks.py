"""Whether an existing network and a certificate are as the blueprint says."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.deployment.check_results import CheckResult
from inference_blueprints.deployment.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.types import ExistingNetwork
from inference_blueprints.spec.zones import platform_zones

_ISSUED = "ISSUED"
_REGION_OF_ARN = 3


def existing_network(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare an existing VPC and its subnets with the blueprint; a new network has nothing to compare."""
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
        message = f"{error.response['Error']['Message']}; name ids that exist, listed by"
        yield CheckResult("network", "error", message, command)
        return
    problems = [*_of_vpc(context, ec2, network, vpc), *_of_subnets(context, network, subnets)]
    yield from problems
    if not problems:
        count = len(subnets)
        yield CheckResult("network", "ok", f"{network.vpc_id} with {count} subnets is as the blueprint says")


def _of_vpc(
    context: DoctorContext, ec2: Any, network: ExistingNetwork, vpc: dict[str, Any]
) -> Iterator[CheckResult]:
    """Look at range and names."""
    ranges = [each["CidrBlock"] for each in vpc.get("CidrBlockAssociationSet", [])] or [vpc["CidrBlock"]]
    if network.vpc_cidr not in ranges:
        message = f"{network.vpc_id} has {', '.join(ranges)} and not {network.vpc_cidr}; correct vpcCidr"
        yield CheckResult("network", "error", message)
    for attribute in ("enableDnsSupport", "enableDnsHostnames"):
        answer = ec2.describe_vpc_attribute(VpcId=network.vpc_id, Attribute=attribute)
        if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
            option = "--enable-dns-support" if attribute == "enableDnsSupport" else "--enable-dns-hostnames"
            command = context.aws(f"ec2 modify-vpc-attribute --vpc-id {network.vpc_id} {option}")
            message = f"{network.vpc_id}: {attribute} is off; the models' names need it"
            yield CheckResult("network", "error", message, command)


def _of_subnets(
    context: DoctorContext, network: ExistingNetwork, subnets: list[dict[str, Any]]
) -> Iterator[CheckResult]:
    """Look at VPC and zone of each subnet, in the blueprint's order."""
    by_id = {subnet["SubnetId"]: subnet for subnet in subnets}
    for subnet_id, zone in zip(network.private_subnet_ids, platform_zones(context.environment), strict=True):
        subnet = by_id[subnet_id]
        if subnet["VpcId"] != network.vpc_id:
            message = f"{subnet_id} is in {subnet['VpcId']} and not in {network.vpc_id}; name one of that VPC"
            yield CheckResult("network", "error", message)
        if subnet["AvailabilityZone"] != zone:
            message = f"{subnet_id} is in {subnet['AvailabilityZone']} and not in {zone}; correct their order"
            yield CheckResult("network", "error", message)


def certificate(context: DoctorContext) -> Iterator[CheckResult]:
    """Find out whether the certificate is issued, in the region, and for the models' names."""
    network = context.blueprint.spec.network
    arn = network.certificate_arn
    if arn is None:
        return
    region = arn.split(":")[_REGION_OF_ARN]
    request = context.aws(
        f"acm request-certificate --domain-name '*.{network.domain}' --validation-method DNS"
    )
    if region != context.environment.region:
        message = f"it is of {region}, the load balancer needs one of {context.environment.region}"
        yield CheckResult("certificate", "error", message, request)
        return
    acm = context.account.client("acm")
    try:
        found = acm.describe_certificate(CertificateArn=arn)["Certificate"]
    except acm.exceptions.ResourceNotFoundException:
        yield CheckResult("certificate", "error", f"there is no {arn}", request)
        return
    if found["Status"] != _ISSUED:
        command = context.aws(f"acm describe-certificate --certificate-arn {arn}")
        message = f"it is {found['Status']} and not {_ISSUED}; the records that validate it are shown by"
        yield CheckResult("certificate", "error", message, command)
    names = [found["DomainName"], *found.get("SubjectAlternativeNames", [])]
    hosts = [f"{model.name}.{network.domain}" for model in context.blueprint.spec.models]
    uncovered = [host for host in hosts if not any(_covers(name, host) for name in names)]
    if uncovered:
        message = f"it is for {', '.join(dict.fromkeys(names))} and not for {', '.join(uncovered)}"
        yield CheckResult("certificate", "error", message, request)
    elif found["Status"] == _ISSUED:
        yield CheckResult("certificate", "ok", f"issued for {', '.join(dict.fromkeys(names))}")


def _covers(name: str, host: str) -> bool:
    """Whether a certificate's name is a host's; a star stands for one label (RFC 6125)."""
    return fnmatchcase(host, name) and host.count(".") == name.count(".")
