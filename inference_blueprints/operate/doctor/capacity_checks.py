"""Checks of what the account may use at once: EC2 quotas, function calls, and the offers of zones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult, Severity
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.quotas import QUOTAS, QuotaNeed
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.capacity_dates import format_time, moment
from inference_blueprints.spec.derived import controllers_of, platform_zones
from inference_blueprints.spec.types import CapacityBlock, Pool, ReservedCapacity
from inference_contracts.batch_limits import RESERVED_CALLS, UNRESERVED_CALLS
from inference_contracts.canary_names import CANARY_CALLS

# Compares reserved capacity with the pools that use it. What Karpenter cannot use is paid for and idle.

#: States of the Amazon EC2 API, CapacityReservation. In the first one instances start now; in the others the
#: capacity is still to come. In all others it will not come, or is gone.
_ACTIVE = "active"
_TO_COME = frozenset({"pending", "scheduled", "payment-pending", "assessing", "delayed"})
#: Reservation type of the EC2 API by the blueprint's purchase option. Without a type it is `default`.
_TYPES = {"reservation": "default", "capacityBlock": "capacity-block"}
_CHECK = "reservations"
_Section = ReservedCapacity | CapacityBlock


def reservations(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare type, zone, state, dates and number of each reservation with its pool."""
    reserved = [
        (pool, section)
        for pool in context.blueprint.spec.pools
        if (section := pool.purchase.reservation or pool.purchase.capacity_block)
    ]
    if not reserved:
        return
    summary = summarise(context.blueprint, build_plan(context.blueprint))
    used = {pool.name: pool.nodes_used for pool in summary[POOLS]}
    for pool, section in reserved:
        yield from _of_pool(context, pool, section, used[pool.name])


def _of_pool(context: DoctorContext, pool: Pool, section: _Section, nodes: int) -> Iterator[CheckResult]:
    """Check the reservations that a pool selects."""
    found = _selected(context, section)
    command = context.aws(f"ec2 describe-capacity-reservations {_options(section)}")
    if not found:
        words = section.id or f"no reservation with the tags {_tags(section)}"
        gone = f"{words} does not exist" if section.id else f"{words} exists"
        message = f"pool {pool.name}: {gone} in this account and region; correct purchase, or buy one"
        yield CheckResult(_CHECK, "error", message, command)
        return
    faults = {each["CapacityReservationId"]: _faults(context, pool, each) for each in found}
    usable = [each for each in found if not faults[each["CapacityReservationId"]]]
    # Tags may also select reservations that have ended, or that are for other pools.
    severity: Severity = "warning" if usable else "error"
    for identifier, problems in faults.items():
        for problem in problems:
            yield CheckResult(_CHECK, severity, f"pool {pool.name}: {identifier} {problem}", command)
    yield from _other_dates(pool, section, found, command)
    if usable:
        yield _counted(pool, usable, nodes, context.now, command)


def _selected(context: DoctorContext, section: _Section) -> list[dict[str, Any]]:
    """Return the reservations that an ID or tags select. As in Karpenter, `*` stands for any value."""
    paginator = context.account.client("ec2").get_paginator("describe_capacity_reservations")
    if section.id:
        pages = paginator.paginate(CapacityReservationIds=[section.id])
    else:
        filters = [{"Name": name, "Values": [value]} for name, value in _filters(section)]
        pages = paginator.paginate(Filters=filters)
    try:
        return [each for page in pages for each in page["CapacityReservations"]]
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidCapacityReservationId.NotFound":
            return []
        raise


def _faults(context: DoctorContext, pool: Pool, found: dict[str, Any]) -> list[str]:
    """Return why Karpenter cannot start nodes of the pool in a reservation, now or later."""
    faults = []
    kind, wanted = found.get("ReservationType", "default"), _TYPES[pool.purchase.chosen]
    if kind != wanted:
        other = next(option for option, name in _TYPES.items() if name != wanted)
        faults.append(f"has the type {kind}, not {wanted}; use purchase: {{{other}: ...}}")
    names = [each.name for each in pool.types]
    if found["InstanceType"] not in names:
        types = ", ".join(names)
        faults.append(f"is for {found['InstanceType']}, the pool has {types}; correct instanceTypes")
    zones = platform_zones(context.environment)
    zone = found["AvailabilityZone"]
    if zone not in zones:
        faults.append(
            f"is in {zone}, the platform has subnets in {', '.join(zones)}; add {zone} to "
            "environment.availabilityZones"
        )
    elif pool.availability_zone and zone != pool.availability_zone:
        faults.append(f"is in {zone}, the pool in {pool.availability_zone}; set availabilityZone: {zone}")
    end = found.get("EndDate")
    if end and end <= context.now:
        faults.append(f"ended at {format_time(end)}; buy another, and name it")
    elif found["State"] != _ACTIVE and found["State"] not in _TO_COME:
        faults.append(f"is {found['State']}; buy another, and name it")
    return faults


def _other_dates(
    pool: Pool, section: _Section, found: Sequence[dict[str, Any]], command: str
) -> Iterator[CheckResult]:
    """Compare the dates of the blueprint with EC2's. Only a block that is named by its ID has dates."""
    if not isinstance(section, CapacityBlock):
        return
    dates = (("starts", section.starts, "StartDate"), ("ends", section.ends, "EndDate"))
    for each in found:
        for key, written, field in dates:
            got, actual = moment(written or ""), each.get(field)
            if got and actual and got != actual:
                message = (
                    f"pool {pool.name}: {key} is {format_time(got)} in the blueprint, and "
                    f"{each['CapacityReservationId']} {key} at {format_time(actual)}; correct '{key}'"
                )
                yield CheckResult(_CHECK, "warning", message, command)


def _counted(
    pool: Pool, usable: Sequence[dict[str, Any]], nodes: int, now: datetime, command: str
) -> CheckResult:
    """Compare the number of reserved instances with the pool, and say what begins later."""
    total = sum(each["TotalInstanceCount"] for each in usable)
    words = "; ".join(_described(each, now) for each in usable)
    message = f"pool {pool.name}: {words}; its workers need {nodes} nodes, it may have {pool.nodes.max}"
    if total < nodes:
        advice = "reserve more, or lower replicas and nodes"
        return CheckResult(_CHECK, "error", f"{message}; {advice}", command)
    if total < pool.nodes.max:
        return CheckResult(_CHECK, "warning", f"{message}; reserve more, or lower nodes.max", command)
    if not any(each["State"] == _ACTIVE for each in usable):
        return CheckResult(_CHECK, "warning", f"{message}; workers wait until it begins", command)
    return CheckResult(_CHECK, "ok", message)


def _described(found: dict[str, Any], now: datetime) -> str:
    """Return number, type, zone and dates of a reservation."""
    start, end = found.get("StartDate"), found.get("EndDate")
    dates = f" from {format_time(start)}" if start and start > now else ""
    dates += f" until {format_time(end)}" if end else ""
    state = "" if found["State"] == _ACTIVE else f" ({found['State']})"
    number, name = found["TotalInstanceCount"], found["InstanceType"]
    identifier = found["CapacityReservationId"]
    return f"{identifier} has {number} {name} in {found['AvailabilityZone']}{dates}{state}"


def _options(section: _Section) -> str:
    """Return the options of the AWS command line that select the same reservations."""
    if section.id:
        return f"--capacity-reservation-ids {section.id}"
    return "--filters " + " ".join(f"'Name={name},Values={value}'" for name, value in _filters(section))


def _filters(section: _Section) -> list[tuple[str, str]]:
    """Return EC2's filters for the tags: name and value."""
    pairs = sorted((section.tags or {}).items())
    return [("tag-key", key) if value == "*" else (f"tag:{key}", value) for key, value in pairs]


def _tags(section: _Section) -> str:
    """Return the selecting tags as text."""
    return ", ".join(f"{key}={value}" for key, value in sorted((section.tags or {}).items()))


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
        f"{need.name}: {granted:,.0f} vCPUs are granted, {need.vcpu_used:,} are needed, "
        f"{', '.join(need.pools)} can grow to {need.vcpu_max:,}"
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
    """Compare the calls that batch, canary and controllers reserve with the concurrency of the account.

    New accounts have little. Lambda's own answer counts what other functions have reserved
    (https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html).
    """
    spec = context.blueprint.spec
    of_batch = [RESERVED_CALLS] if spec.batch else []
    of_canary = [CANARY_CALLS] if spec.observability and spec.observability.canary else []
    functions = [*of_batch, *of_canary, *(controller.calls for controller in controllers_of(spec))]
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
