"""The shared pools of a blueprint with traces: what `pool_simulation` compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from inference_blueprints.measure.shift_simulation.pool_simulation import (
    PoolDays,
    PoolOutcome,
    PoolRole,
    SimulatedBatch,
    pool_of_size,
    simulated_pool,
)
from inference_blueprints.measure.shift_simulation.traced_workers import TracedWorkers, WayTraces
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.autoscaling.request_rates import demand_per_minute
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.traffic import accelerators, own_part, serving_deployments
from inference_blueprints.serving.way_capacity import deployment_capacity
from inference_blueprints.spec.types import BatchQueue, Blueprint
from inference_contracts.errors import UserError
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.shift_names import SharedPool, ShiftConfiguration, ShiftedWorkers
from inference_contracts.units import MINUTES_PER_DAY, MINUTES_PER_HOUR, SECONDS_PER_DAY, SECONDS_PER_HOUR
from inference_decisions.capacity_shift.demand_history import Numbers

#: Part of a trace on which ways are tuned: four of seven days.
_TUNED_PART = 4.0 / 7.0
#: Of the random arrivals of batch: the same trace always gives the same result.
_SEED = 20261129


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPool:
    """A shared pool over the days of traces."""

    pool: SharedPool
    days: PoolDays
    batch_hours: Mapping[str, float]
    """Accelerator-hours of work per day, by queue."""
    ways: Sequence[PoolOutcome]
    """What each way needs, the bound first."""
    own: PoolOutcome
    """What the shift does with the pool as the blueprint has it."""

    @property
    def tuned_hours(self) -> float:
        """Hours on which ways are tuned or learn."""
        return self.days.tuned / MINUTES_PER_HOUR

    @property
    def counted_hours(self) -> float:
        """Hours that are counted."""
        return len(self.days.roles[0].values) / MINUTES_PER_HOUR - self.tuned_hours


def simulated_pools(
    blueprint: Blueprint,
    configuration: ShiftConfiguration,
    traced: Sequence[TracedWorkers],
    traces: WayTraces,
    *,
    learnt: int,
    batch_hours: Mapping[str, float],
) -> Iterator[SimulatedPool]:
    """Yield the shared pools that have workers of real time.

    traced: Workers of real time with their demand.
    learnt: Minutes that are only learnt from.
    batch_hours: Accelerator-hours per day by queue, where the user gave them.
    Raises UserError if nothing says how long the work of a queue takes, or such hours belong to no queue.
    """
    queues = {each.name: each for each in blueprint.spec.batch.queues} if blueprint.spec.batch else {}
    for name in batch_hours:
        if name not in queues:
            raise UserError(f"got --batch-hours for {name}; allowed are {', '.join(queues)}")
    for pool in configuration.shared_pools:
        roles = [_role(each) for each in traced if each.moved.workers.pool == pool.pool]
        if not roles:
            continue
        length = len(roles[0].values)
        hours: dict[str, float] = {}
        batch = []
        for queue in queues.values():
            lent = _lent(blueprint, queue, configuration, pool)
            if not lent:
                continue
            given = batch_hours.get(queue.name)
            hours[queue.name] = _hours(blueprint, queue, lent) if given is None else given
            batch.append(_batch(queue, lent, traces, hours[queue.name], length))
        batch.sort(key=lambda each: each.deadline_minutes)
        days = PoolDays(
            roles=roles, batch=batch, learnt=learnt, tuned=max(learnt, round(length * _TUNED_PART))
        )
        yield SimulatedPool(
            pool=pool,
            days=days,
            batch_hours=hours,
            ways=tuple(simulated_pool(days)),
            own=pool_of_size(days, pool.accelerators),
        )


def _role(traced: TracedWorkers) -> PoolRole:
    workers, start = traced.moved.workers, traced.moved.start.seconds
    handover = workers.handover_seconds or start
    return PoolRole(
        name=workers.name,
        values=traced.values,
        capacity=workers.capacity,
        accelerators=workers.accelerators,
        minimum=workers.least,
        maximum=workers.most,
        handover_seconds=handover,
        new_node_seconds=max(start, handover),
        priority=workers.priority,
    )


def _lent(
    blueprint: Blueprint, queue: BatchQueue, configuration: ShiftConfiguration, pool: SharedPool
) -> ShiftedWorkers | None:
    """Return the workers on a pool that serve a queue alone. None if there are none."""
    releases = [roles[0].release for roles in _serving(blueprint, queue)]
    return next(
        (
            each
            for each in configuration.workers
            if each.batch_only and each.pool == pool.pool and each.release in releases
        ),
        None,
    )


def _serving(blueprint: Blueprint, queue: BatchQueue) -> Iterator[tuple[ResolvedWorkers, ...]]:
    """Yield the roles of each deployment that answers a queue's requests."""
    names = serving_deployments(blueprint.spec, queue)
    for model_index, model in enumerate(blueprint.spec.models):
        for index, deployment in enumerate(model.deployments):
            if model.name == queue.model and deployment.name in names:
                yield resolve(blueprint, model_index, index)


def _hours(blueprint: Blueprint, queue: BatchQueue, lent: ShiftedWorkers) -> float:
    """Return the accelerator-hours per day of what the queue's other workers do not do.

    Speeds are those of the plan's deadlines; where the plan does not know one, nor does this.
    """
    rates: dict[str, float] = {}
    unknown = "" if queue.load else "it has no 'load'"
    for roles in _serving(blueprint, queue):
        capacity = deployment_capacity(roles, own_part(queue, roles[0].traffic))
        if roles[0].release == lent.release:
            full = capacity.full_requests_per_second
            rates[lent.release] = (full or 0.0) / accelerators(roles[0].deployment)
        elif not any(role.workers.is_lent for role in roles):
            if {way.kind for way in roles[0].traffic.ways} != {"queue"}:
                continue
            rates[roles[0].release] = capacity.full_requests_per_second or 0.0
        else:
            continue
        unknown = unknown or capacity.why_unknown
    if queue.load is None or unknown:
        raise UserError(
            f"nobody knows how many GPU hours queue {queue.name} needs: {unknown}; give "
            f"--batch-hours {queue.name}=HOURS, per day"
        )
    speed = rates.pop(lent.release)
    requests = max(0.0, queue.load.requests_per_day - sum(rates.values()) * SECONDS_PER_DAY)
    return requests / speed / SECONDS_PER_HOUR


def _batch(
    queue: BatchQueue, lent: ShiftedWorkers, traces: WayTraces, hours: float, length: int
) -> SimulatedBatch:
    """Return the work of a queue: as its own trace says, else evenly over the day."""
    rates = traces.by_name.get(queue.name)
    shape: Numbers = numpy.ones(length)
    if rates is not None:
        shape = numpy.array(demand_per_minute(rates, _SEED))
    per_minute = hours * MINUTES_PER_HOUR / MINUTES_PER_DAY
    return SimulatedBatch(
        name=queue.name,
        work=shape * per_minute / shape.mean(),
        deadline_minutes=round(queue.deadline_hours * MINUTES_PER_HOUR),
        accelerators=lent.accelerators,
        maximum=lent.most,
        handover_seconds=lent.handover_seconds or 0.0,
    )


def pool_notes(simulated: SimulatedPool) -> Iterator[str]:
    """Yield what the figures of a pool count."""
    tuned, counted = number(simulated.tuned_hours), number(simulated.counted_hours)
    yield (
        f"Pool {simulated.pool.pool}: ways are tuned on the first {tuned} h, and counted "
        f"on the other {counted} h. A way needs as many GPUs as it takes to miss at most "
        "0.1 % of each role's demand and to keep batch's deadlines; fleets are paid for what they hold, "
        "elastic ones by the started hour. GPUs count one by one: whole nodes make small fleets dearer. The "
        "bound knows the demand of a hand-over before it comes. GPUs of workers with a fixed number are not "
        "counted."
    )
    for queue, hours in simulated.batch_hours.items():
        yield f"{queue} needs {number(hours)} GPU hours per day of this pool."
    for each in simulated.ways:
        if not each.keeps:
            yield f"{each.way}: misses more than it may with any number of GPUs, so its figure is too good."
        if each.settings:
            yield f"{each.way}: {each.settings}."


def pool_table(simulated: SimulatedPool) -> TextTable:
    """Return a row for each way, and one for the shift on the pool as the blueprint has it."""
    named: list[tuple[str, PoolOutcome]] = [(each.way, each) for each in simulated.ways]
    rows = [
        (
            name,
            f"{each.accelerators:.1f}",
            f"{each.accelerators / simulated.ways[0].accelerators:.2f}",
            f"{100.0 * each.worst:.3f}",
            f"{100.0 * each.late:.1f}",
        )
        for name, each in [*named, ("shift, this pool", simulated.own)]
    ]
    figures = ("GPUs", "of the bound", "unmet demand, %", "late batch, %")
    return TextTable(f"Pool {simulated.pool.pool} (simulated)", ("way",), figures, tuple(rows))


def pool_as_dict(simulated: SimulatedPool) -> dict[str, Any]:
    """Return the same as JSON values, with the unmet demand of each role."""

    def outcome(found: PoolOutcome) -> dict[str, Any]:
        return {
            "way": found.way,
            "accelerators": found.accelerators,
            "ofBound": found.accelerators / simulated.ways[0].accelerators,
            "unmetPercent": {name: 100.0 * missed for name, missed in found.missed.items()},
            "latePercent": 100.0 * found.late,
            "keepsObjectives": found.keeps,
            "settings": found.settings,
        }

    return {
        "pool": simulated.pool.pool,
        "tunedHours": simulated.tuned_hours,
        "countedHours": simulated.counted_hours,
        "batchAcceleratorHoursPerDay": dict(simulated.batch_hours),
        "ways": [outcome(each) for each in simulated.ways],
        "shiftOnThisPool": outcome(simulated.own),
    }
