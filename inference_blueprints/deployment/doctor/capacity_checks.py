"""Whether the pools may hold what the blueprint says: quotas by family, instance types by zone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inference_blueprints.deployment.check_results import CheckResult
from inference_blueprints.deployment.doctor.doctor_context import DoctorContext
from inference_blueprints.figures import QuotaNeed
from inference_blueprints.planning.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Pool
from inference_blueprints.spec.zones import platform_zones

_SERVICE = "ec2"


def quotas(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the vCPUs that nodes need, and may come to, with the account's quotas."""
    client = context.account.client("service-quotas")
    for need in summarise(context.blueprint, build_plan(context.blueprint)).quotas:
        if not need.code:
            message = f"what counts {need.purchase} instances of {', '.join(need.pools)} is not known"
            yield CheckResult("quotas", "unknown", message)
            continue
        granted = _granted(client, need.code)
        if granted is None:
            message = f"{need.name} ({need.code}): AWS does not know it in this region"
            yield CheckResult("quotas", "unknown", message)
        else:
            yield _compared(context, need, granted)


def _compared(context: DoctorContext, need: QuotaNeed, granted: float) -> CheckResult:
    """Say whether a quota is enough for the replicas, and for the pools at their maximum."""
    message = (
        f"{need.name}: {granted:.0f} vCPUs are granted, {need.vcpu_used} are needed, "
        f"{', '.join(need.pools)} may come to {need.vcpu_max}"
    )
    if granted >= need.vcpu_max:
        return CheckResult("quotas", "ok", message)
    request = context.aws(
        f"service-quotas request-service-quota-increase --service-code {_SERVICE} "
        f"--quota-code {need.code} --desired-value {need.vcpu_max}"
    )
    return CheckResult("quotas", "error" if granted < need.vcpu_used else "warning", message, request)


def _granted(client: Any, code: str) -> float | None:
    """Return a quota's value in this account and region, None where AWS does not know the quota."""
    try:
        return float(client.get_service_quota(ServiceCode=_SERVICE, QuotaCode=code)["Quota"]["Value"])
    except client.exceptions.NoSuchResourceException:
        return None


def offerings(context: DoctorContext) -> Iterator[CheckResult]:
    """Find out in which of the platform's zones each pool's instance types are sold."""
    zones = platform_zones(context.environment)
    offered = _offered(context)
    for pool in context.blueprint.spec.pools:
        own_zones = [pool.availability_zone] if pool.availability_zone else zones
        yield _offering(pool, own_zones, offered, context)


def _offered(context: DoctorContext) -> Mapping[str, set[str]]:
    """Return the zones of every instance type that the blueprint names."""
    names = sorted({name for pool in context.blueprint.spec.pools for name in pool.instance_types})
    zones: dict[str, set[str]] = {name: set() for name in names}
    paginator = context.account.client("ec2").get_paginator("describe_instance_type_offerings")
    filters = [{"Name": "instance-type", "Values": names}]
    for page in paginator.paginate(LocationType="availability-zone", Filters=filters):
        for offering in page["InstanceTypeOfferings"]:
            zones[offering["InstanceType"]].add(offering["Location"])
    return zones


def _offering(
    pool: Pool, zones: list[str], offered: Mapping[str, set[str]], context: DoctorContext
) -> CheckResult:
    """Say where a pool can have nodes."""
    sold = {name: [zone for zone in zones if zone in offered[name]] for name in pool.instance_types}
    words = "; ".join(f"{name} in {', '.join(there) or 'none'}" for name, there in sold.items())
    message = f"pool {pool.name}, of the zones {', '.join(zones)}: {words}"
    command = context.aws(
        "ec2 describe-instance-type-offerings --location-type availability-zone "
        f"--filters Name=instance-type,Values={','.join(pool.instance_types)}"
    )
    if not any(sold.values()):
        return CheckResult("offerings", "error", f"{message}; name zones that have it, listed by", command)
    if not all(sold.values()):
        return CheckResult("offerings", "warning", f"{message}; some types never start here", command)
    return CheckResult("offerings", "ok", message)
