"""The pools that models share by the hour: what their workers may ask for, and who comes first."""

from __future__ import annotations

import math
from collections.abc import Iterator

from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.scaling.shift_of_plan import handovers_of
from inference_blueprints.serving.scaling.worker_load import used_by_hour
from inference_blueprints.spec.sections.pools.shared import PoolSharing, shared_pools, shares
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY


@dataclass(frozen=True, slots=True)
class SharingRole:
    """The workers of a role on a shared pool."""

    workers: str
    """Model and deployment, with the role if there are several."""
    priority: int
    batch_only: bool
    """Whether they serve batch alone."""
    workers_least: int
    workers_most: int
    """`workers_least`, `workers_most`: Their range."""
    workers_by_priority: int
    """How many run if all of real time asks for as many as it may: those that come first have theirs."""
    accelerators: int
    """Accelerators of one worker."""
    handover_seconds: int | None
    """Time until a worker of another role has stopped and one of this role serves. None if their number is
    fixed."""
    new_node_seconds: int | None
    """Time until a worker serves on a node that has to start, while the pool has fewer than it may have. None
    if all of its nodes always run, their number is fixed, or `reclaimSeconds` is stated."""


@dataclass(frozen=True, slots=True)
class SharedPoolSummary:
    """A pool that models share by the hour."""

    pool: str
    accelerators: int
    """Accelerators of all its nodes."""
    accelerators_least: int
    accelerators_most: int
    """`accelerators_least`, `accelerators_most`: What its workers have together at their smallest numbers,
    and would have at their largest."""
    handover_seconds: int
    """The longest hand-over."""
    busiest_hour: int | None
    """Hour of the day in UTC in which the stated rates need most; None if no model on it states rates by
    hour."""
    accelerators_in_busiest_hour: int | None
    """What its workers need then (simulated), those without such rates or a latency profile at their smallest
    number."""
    roles: tuple[SharingRole, ...]
    """Who uses it, in the order in which they get accelerators."""


def _summarise(basis: PlanBasis) -> Iterator[SharedPoolSummary]:
    """Yield the shared pools in the blueprint's order."""
    pools = tuple(shared_pools(basis.spec))
    if not pools:
        return
    numbers, handovers = shares(basis.spec), handovers_of(basis.blueprint, basis.plan)
    for shared in pools:
        roles = tuple(
            SharingRole(
                workers=each.name,
                priority=each.deployment.model.priority or 0,
                batch_only=each.workers.is_lent,
                workers_least=each.workers.minimum,
                workers_most=each.workers.maximum,
                workers_by_priority=numbers[each.path],
                accelerators=each.workers.accelerators,
                handover_seconds=handover.seconds if handover else None,
                new_node_seconds=handover.on_new_node if handover else None,
            )
            for each in shared.roles
            for handover in (handovers.get(each.path),)
        )
        by_hour = _needed_by_hour(basis, shared)
        busiest = max(range(len(by_hour)), key=by_hour.__getitem__) if by_hour else None
        yield SharedPoolSummary(
            pool=shared.pool.name,
            accelerators=shared.accelerators,
            accelerators_least=shared.least,
            accelerators_most=shared.most,
            handover_seconds=max((each.handover_seconds or 0 for each in roles), default=0),
            busiest_hour=busiest,
            accelerators_in_busiest_hour=None if busiest is None else by_hour[busiest],
            roles=roles,
        )


def _needed_by_hour(basis: PlanBasis, shared: PoolSharing) -> list[int]:
    """Return the accelerators that the stated rates need in each hour of a day; empty without such rates."""
    found, known = [0] * HOURS_PER_DAY, False
    for roles in basis.deployments.values():
        used = used_by_hour(roles)
        known = known or (used is not None and any(each.pool is shared.pool for each in roles))
        for role in roles:
            if role.pool is not shared.pool:
                continue
            workers = role.workers
            for hour in range(HOURS_PER_DAY):
                needed = math.ceil(used[hour] * workers.maximum) if used else workers.minimum
                number = min(workers.maximum, max(workers.minimum, needed))
                found[hour] += number * workers.accelerators
    return found if known else []


def sharing(summary: PlanSummary) -> TextTable:
    """Return the table of shared pools, which has rows if there are any."""
    return TextTable(
        "Shared pools",
        ("pool", "workers"),
        ("priority", "number", "by priority", "devices per worker", "hand-over, s", "on a new node, s"),
        tuple(
            (
                pool.pool,
                f"{each.workers}{' (batch)' if each.batch_only else ''}",
                str(each.priority),
                _range(each),
                str(each.workers_by_priority),
                str(each.accelerators),
                *(
                    "-" if seconds is None else f"{seconds:,}"
                    for seconds in (each.handover_seconds, each.new_node_seconds)
                ),
            )
            for pool in summary[SHARED_POOLS]
            for each in pool.roles
        ),
        tuple(map(_note, summary[SHARED_POOLS])),
    )


def _range(role: SharingRole) -> str:
    if role.workers_least == role.workers_most:
        return str(role.workers_most)
    return f"{role.workers_least} to {role.workers_most}"


def _note(pool: SharedPoolSummary) -> str:
    """Return what the pool's workers may ask for, and how long it takes to give way."""
    lent = [each for each in pool.roles if each.batch_only]
    batch = ""
    if lent:
        at_most = sum(each.workers_most for each in lent)
        batch = (
            f" Figures of batch count all {at_most} workers, which it has only while real time leaves them."
        )
    busiest = ""
    if pool.accelerators_in_busiest_hour is not None:
        busiest = (
            f" The stated rates need most from {pool.busiest_hour}:00 UTC on: "
            f"{pool.accelerators_in_busiest_hour:,} (simulated)."
        )
    return (
        f"{pool.pool} has {pool.accelerators:,} devices. Its workers always use {pool.accelerators_least:,}, "
        f"and may ask for {pool.accelerators_most:,}.{busiest} The longest hand-over takes "
        f"{pool.handover_seconds:,} s: another worker stops, weights are loaded, and the engine starts. A "
        f"stated reclaimSeconds replaces these times.{batch}"
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield how much the workers of a shared pool may ask for, and its longest hand-over."""
    for pool in summary[SHARED_POOLS]:
        yield (
            Label.OPERATION,
            f"{len(pool.roles)} {'role shares' if len(pool.roles) == 1 else 'roles share'} "
            f"{pool.accelerators:,} devices of {pool.pool} and may ask for "
            f"{pool.accelerators_most:,}; the longest hand-over takes {pool.handover_seconds:,} s",
        )
        needed = pool.accelerators_in_busiest_hour
        if needed is not None and needed > pool.accelerators:
            yield (
                Label.WARNINGS,
                f"The stated rates need {needed:,} devices of {pool.pool} at {pool.busiest_hour}:00 UTC "
                f"(simulated), and it has {pool.accelerators:,}: then models give way by priority.",
            )


SHARED_POOLS = PlanSection("sharedPools", lambda basis: tuple(_summarise(basis)), _in_short, (sharing,))
