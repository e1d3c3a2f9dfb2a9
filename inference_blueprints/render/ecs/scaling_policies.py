"""How an elastic role's ECS service scales: target tracking policies, and floors by schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from inference_blueprints.serving.autoscaling.cron_schedule import CronSchedule
from inference_blueprints.serving.types import Process, ReplicaFloor, ScaleTrigger, Scaling, ServingPlan
from inference_contracts.records import dataclass
from inference_contracts.scale_metrics import PublishedRole, PublishedTrigger, load_dimensions
from inference_contracts.units import MINUTES_PER_DAY

# Floors by schedule as scheduled actions of Application Auto Scaling.
#
# A scheduled action sets the smallest number of tasks at a time, and it stays until the next action
# (https://docs.aws.amazon.com/autoscaling/application/APIReference/API_PutScheduledAction.html). KEDA's cron
# trigger is a window instead, and the highest of several open windows counts. So the windows of a week are
# computed here, and each moment at which the highest open floor changes becomes an action.

_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WEEK = 7 * MINUTES_PER_DAY
#: Scheduled actions of a scalable target:
#: https://docs.aws.amazon.com/autoscaling/application/userguide/application-auto-scaling-quotas.html
_MAX_ACTIONS: Final = 200


class FloorScheduleError(ValueError):
    """Application Auto Scaling cannot keep these floors. The text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledFloor:
    """A scheduled action that sets the smallest number of tasks."""

    schedule: str
    """Expression in AWS' form: minute, hour, day of month, month, day of week and year."""
    time_zone: str
    """IANA name of its time zone."""
    minimum: int
    """Smallest number of tasks from then on."""


@dataclass(frozen=True, slots=True)
class _Window:
    start: CronSchedule
    end: CronSchedule
    replicas: int


def scheduled_floors(floors: Sequence[ReplicaFloor], minimum: int) -> tuple[ScheduledFloor, ...]:
    """Return the actions that keep the highest open floor.

    floors: Floors of a role, whose expressions are valid.
    minimum: Smallest number of tasks while no floor holds.
    Raises FloorScheduleError if scheduled actions cannot do it.
    """
    if not floors:
        return ()
    windows = [
        _Window(
            CronSchedule.read(floor.start, floor.time_zone),
            CronSchedule.read(floor.end, floor.time_zone),
            floor.replicas,
        )
        for floor in floors
    ]
    weekly = all(_is_weekly(each.start) and _is_weekly(each.end) for each in windows)
    if len(floors) == 1 and not weekly:
        return _of_one(floors[0], windows[0], minimum)
    if not weekly:
        raise FloorScheduleError(
            "several floors with days of the month or months can overlap, and a scheduled action of "
            "Application Auto Scaling does not know which of them hold; use days of the week, or one floor"
        )
    if len({floor.time_zone for floor in floors}) > 1:
        raise FloorScheduleError(
            "floors in several time zones overlap differently in summer and winter, and a scheduled action "
            "of Application Auto Scaling does not know which of them hold; use one time zone"
        )
    actions = _of_week(windows, floors[0].time_zone, minimum)
    if len(actions) > _MAX_ACTIONS:
        raise FloorScheduleError(
            f"they change {len(actions)} times a week, Application Auto Scaling takes {_MAX_ACTIONS} "
            "scheduled actions; use fewer times"
        )
    return actions


def _is_weekly(schedule: CronSchedule) -> bool:
    return len(schedule.months) == 12 and len(schedule.days) == 31  # noqa: PLR2004 - a year, and a month


def _of_one(floor: ReplicaFloor, window: _Window, minimum: int) -> tuple[ScheduledFloor, ...]:
    return tuple(
        ScheduledFloor(schedule=_expression(schedule), time_zone=floor.time_zone, minimum=number)
        for schedule, number in ((window.start, floor.replicas), (window.end, minimum))
    )


def _expression(schedule: CronSchedule) -> str:
    """Return an expression in AWS' form, in which one of both days is ``?``.

    https://docs.aws.amazon.com/autoscaling/application/userguide/scheduled-scaling-using-cron-expressions.html
    """
    every_day, every_weekday = len(schedule.days) == 31, len(schedule.weekdays) == 7  # noqa: PLR2004
    if not every_day and not every_weekday:
        raise FloorScheduleError(
            "Application Auto Scaling reads a day of the month or a day of the week, not both; write '*' for "
            "one of them"
        )
    days = "?" if every_day else _numbers(schedule.days)
    weekdays = ",".join(_WEEKDAYS[day] for day in sorted(schedule.weekdays)) if every_day else "?"
    months = "*" if len(schedule.months) == 12 else _numbers(schedule.months)  # noqa: PLR2004
    return f"cron({_numbers(schedule.minutes)} {_numbers(schedule.hours)} {days} {months} {weekdays} *)"


def _numbers(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _of_week(windows: Sequence[_Window], time_zone: str, minimum: int) -> tuple[ScheduledFloor, ...]:
    """Return an action for each number and time of day at which the floor changes, with its days."""
    holds = [_holding(window) for window in windows]
    events = sorted({minute for changes in holds for minute in changes})
    in_force = {
        minute: max(
            [
                minimum,
                *(each.replicas for each, open_ in zip(windows, holds, strict=True) if _at(open_, minute)),
            ]
        )
        for minute in events
    }
    days: dict[tuple[int, int], list[int]] = {}
    # A floor that always holds never changes: one action a week sets it.
    always = set(in_force.values()) != {minimum} and len(set(in_force.values())) == 1
    for before, minute in zip([events[-1], *events], events, strict=False):
        if in_force[before] != in_force[minute] or (always and minute == events[0]):
            days.setdefault((minute % MINUTES_PER_DAY, in_force[minute]), []).append(
                minute // MINUTES_PER_DAY
            )
    return tuple(
        ScheduledFloor(
            schedule=f"cron({time % 60} {time // 60} ? * {','.join(_WEEKDAYS[day] for day in found)} *)",
            time_zone=time_zone,
            minimum=number,
        )
        for (time, number), found in sorted(days.items())
    )


def _holding(window: _Window) -> dict[int, bool]:
    """Return whether a window is open from each of its times on, by minute of the week.

    KEDA looks forward: a window is open if its next end comes before its next start, or with it.
    """
    starts, ends = sorted(_minutes(window.start)), sorted(_minutes(window.end))
    return {minute: _next(ends, minute) <= _next(starts, minute) for minute in sorted({*starts, *ends})}


def _minutes(schedule: CronSchedule) -> Iterator[int]:
    for day in schedule.weekdays:
        for hour in schedule.hours:
            for minute in schedule.minutes:
                yield day * MINUTES_PER_DAY + hour * 60 + minute


def _next(minutes: Sequence[int], after: int) -> int:
    """Return how long it takes until the next of the times comes, at most a week."""
    return min((each - after - 1) % _WEEK for each in minutes)


def _at(holding: dict[int, bool], minute: int) -> bool:
    """Return the state of a window at a time: that since its newest change."""
    newest = min(holding, key=lambda each: (minute - each) % _WEEK)
    return holding[newest]


#: Time until the metric knows of a new desired count: it has points of one minute, and each is complete a
#: minute after it began. A larger need is met within it
#: (https://docs.aws.amazon.com/autoscaling/application/APIReference/API_TargetTrackingScalingPolicyConfiguration.html).
_SCALE_OUT_COOLDOWN_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedLoad:
    """A load that a target tracking policy follows."""

    name: str
    """Name within the role."""
    dimensions: Mapping[str, str]
    """Dimensions of the metric `scale_metrics.LOAD`."""
    target: float
    """Value to keep."""
    why: str
    """A sentence that explains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceScaling:
    """The range of a service's tasks, and how their number moves within it."""

    minimum: int
    maximum: int
    """`minimum`, `maximum`: Smallest and largest number of tasks. On a pool that models share by the hour,
    the capacity shift sets others."""
    shifted_maximum: int | None
    """Largest number that the capacity shift may set on such a pool. None on others."""
    loads: tuple[TrackedLoad, ...]
    """Loads that policies follow."""
    floors: tuple[ScheduledFloor, ...]
    """Smallest numbers by schedule, in the order in which they are defined."""
    scale_in_cooldown_seconds: int
    scale_out_cooldown_seconds: int
    """`scale_in_cooldown_seconds`, `scale_out_cooldown_seconds`: Time after which a policy removes, or adds,
    tasks again."""


def service_scaling(platform: str, release: str, process: Process) -> ServiceScaling | None:
    """Return how a process scales. None if its number is fixed.

    process: A process of the plan.
    Raises FloorScheduleError if Application Auto Scaling cannot keep its floors; `validate` reports it
        before.
    """
    scaling = process.scaling
    if scaling is None:
        return None
    published = _published(release, process, scaling)
    return ServiceScaling(
        minimum=scaling.least,
        maximum=scaling.ceiling or scaling.most,
        shifted_maximum=scaling.most if scaling.ceiling else None,
        loads=tuple(
            TrackedLoad(
                name=trigger.name,
                dimensions=load_dimensions(platform, published, _publish(trigger)),
                target=trigger.target,
                why=trigger.why,
            )
            for trigger in scaling.triggers
        ),
        floors=scheduled_floors(scaling.floors, scaling.least),
        scale_in_cooldown_seconds=scaling.down_stabilization_seconds,
        scale_out_cooldown_seconds=_SCALE_OUT_COOLDOWN_SECONDS,
    )


def published_roles(plan: ServingPlan) -> tuple[PublishedRole, ...]:
    """Return the elastic roles of a platform, whose loads are published."""
    return tuple(_roles(plan))


def _roles(plan: ServingPlan) -> Iterator[PublishedRole]:
    for model in plan.models:
        for deployment in model.deployments:
            for process in deployment.processes:
                if process.scaling is not None:
                    yield _published(deployment.release, process, process.scaling)


def _published(release: str, process: Process, scaling: Scaling) -> PublishedRole:
    return PublishedRole(
        release=release,
        role=process.role,
        triggers=tuple(_publish(trigger) for trigger in scaling.triggers),
    )


def _publish(trigger: ScaleTrigger) -> PublishedTrigger:
    return PublishedTrigger(name=trigger.name, query=trigger.query, metric_type=trigger.metric_type)
