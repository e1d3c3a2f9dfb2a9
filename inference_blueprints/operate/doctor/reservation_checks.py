"""Compares reserved capacity with the pools that use it. What Karpenter cannot use is paid for and idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.check_results import CheckResult, Severity
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.capacity_dates import format_time, moment
from inference_blueprints.spec.types import CapacityBlock, Pool, ReservedCapacity
from inference_blueprints.spec.zones import platform_zones

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
    if total < max(nodes, pool.nodes.min):
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
