"""Checks of what the account may use at once: EC2 quotas, function calls, and the offers of zones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.report.plan.sections.quotas import QUOTAS, QuotaNeed
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.controllers import controllers_of
from inference_blueprints.spec.types import Pool
from inference_blueprints.spec.zones import platform_zones
from inference_contracts.batch_limits import RESERVED_CALLS, UNRESERVED_CALLS

_SERVICE = "ec2"
_NAME = "function calls"


def quotas(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the vCPUs of the used and of the maximum number of nodes with the account's quotas."""
    client = context.account.client("service-quotas")
    for need in summarise(context.blueprint, build_plan(context.blueprint))[QUOTAS]:
        if not need.code:
            message = f"the quota for {need.purchase} instances of {', '.join(need.pools)} is not known"
            yield CheckResult("quotas", "unknown", message)
            continue
        granted = granted_quota(client, need.code)
        if granted is None:
            message = f"{need.name} ({need.code}): AWS does not have this quota in this region"
            yield CheckResult("quotas", "unknown", message)
        else:
            yield _compared(context, need, granted)


def _compared(context: DoctorContext, need: QuotaNeed, granted: float) -> CheckResult:
    """Compare a quota with the need of the replicas, and of the pools at their maximum."""
    message = (
        f"{need.name}: {granted:.0f} vCPUs are granted, {need.vcpu_used} are needed, "
        f"{', '.join(need.pools)} can grow to {need.vcpu_max}"
    )
    if granted >= need.vcpu_max:
        return CheckResult("quotas", "ok", message)
    request = context.aws(
        f"service-quotas request-service-quota-increase --service-code {_SERVICE} "
        f"--quota-code {need.code} --desired-value {need.vcpu_max}"
    )
    return CheckResult("quotas", "error" if granted < need.vcpu_used else "warning", message, request)


def granted_quota(client: Any, code: str) -> float | None:
    """Return the value of one of EC2's quotas in this account and region; None if AWS does not have it."""
    try:
        return float(client.get_service_quota(ServiceCode=_SERVICE, QuotaCode=code)["Quota"]["Value"])
    except client.exceptions.NoSuchResourceException:
        return None


def offerings(context: DoctorContext) -> Iterator[CheckResult]:
    """Check in which of the platform's zones each pool's instance types are offered."""
    zones = platform_zones(context.environment)
    offered = _offered(context)
    for pool in context.blueprint.spec.pools:
        own_zones = [pool.availability_zone] if pool.availability_zone else zones
        yield _offering(pool, own_zones, offered, context)


def _offered(context: DoctorContext) -> Mapping[str, set[str]]:
    """Return the zones of every instance type of the blueprint."""
    names = sorted({each.name for pool in context.blueprint.spec.pools for each in pool.types})
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
    """Check in which zones a pool can have nodes."""
    names = [each.name for each in pool.types]
    sold = {name: [zone for zone in zones if zone in offered[name]] for name in names}
    words = "; ".join(f"{name} in {', '.join(there) or 'none'}" for name, there in sold.items())
    message = f"pool {pool.name}, zones {', '.join(zones)}: {words}"
    command = context.aws(
        "ec2 describe-instance-type-offerings --location-type availability-zone "
        f"--filters Name=instance-type,Values={','.join(names)}"
    )
    if not any(sold.values()):
        return CheckResult("offerings", "error", f"{message}; choose zones that offer a type", command)
    if not all(sold.values()):
        return CheckResult("offerings", "warning", f"{message}; types without a zone never start", command)
    return CheckResult("offerings", "ok", message)


def reserved_calls(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the calls that batch and controllers reserve with the concurrency of the account.

    New accounts have little. Lambda's own answer counts what other functions have reserved
    (https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html).
    """
    spec = context.blueprint.spec
    of_batch = [RESERVED_CALLS] if spec.batch else []
    functions = [*of_batch, *(controller.calls for controller in controllers_of(spec))]
    reserved = sum(sum(calls.values()) for calls in functions)
    if not reserved:
        return
    limit = context.account.client("lambda").get_account_settings()["AccountLimit"]
    total, unreserved = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    message = (
        f"the account runs {total:,} calls at the same time, {unreserved:,} are not reserved; the platform "
        f"reserves {reserved}, and {UNRESERVED_CALLS} must stay unreserved"
    )
    if unreserved >= reserved + UNRESERVED_CALLS:
        yield CheckResult(_NAME, "ok", message)
        return
    quota = catalog.service_quotas()["lambda.concurrency"]
    request = context.aws(
        f"service-quotas request-service-quota-increase --service-code lambda --quota-code {quota.code} "
        f"--desired-value {max(round(quota.value), total - unreserved + reserved + UNRESERVED_CALLS)}"
    )
    if total >= reserved + UNRESERVED_CALLS:
        message += "; nothing is wrong if this platform is already deployed, because it has reserved them"
        yield CheckResult(_NAME, "warning", message, request)
        return
    yield CheckResult(_NAME, "error", f"{message}; ask for more", request)
