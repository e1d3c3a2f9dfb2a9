"""Checks addresses: Elastic IPs for NAT gateways, and free addresses in the subnets of an existing VPC."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.capacity_checks import granted_quota
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.zones import platform_zones
from inference_catalog.tags import PLATFORM_TAG


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
        f"{quota.quota}: {len(allocated)} of {granted:.0f} are in use, the platform's {gateways} NAT "
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
