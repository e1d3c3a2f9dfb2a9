"""Ranges and targets of elastic workers, with the calculation."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.tables import TextTable
from inference_contracts.number_text import number
from inference_contracts.records import dataclass

_PRICE_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class TriggerSummary:
    """A load by which a role scales."""

    name: str
    """The load."""
    target: float
    """Value at which no worker is added."""
    per_worker: bool
    """Whether the target is for each worker; else it is for the role."""
    why: str
    """How the target follows from the plan."""
    query: str
    """PromQL expression that measures the load."""


@dataclass(frozen=True, slots=True)
class FloorSummary:
    """A smallest number of workers during a part of the week."""

    start: str
    end: str
    """`start`, `end`: Cron expressions."""
    time_zone: str
    """Time zone of both."""
    workers: int
    """The number."""


@dataclass(frozen=True, slots=True)
class ScalingSummary:
    """The elastic workers of a role."""

    model: str
    deployment: str
    name: str
    """`model`, `deployment`, `name`: Model and deployment, and name of the process."""
    workers_least: int
    workers_most: int
    """`workers_least`, `workers_most`: Their range."""
    usd_per_hour_least: float | None
    usd_per_hour_most: float | None
    """`usd_per_hour_least`, `usd_per_hour_most`: Their share of the nodes' price, in US dollars per hour;
    None if a price is unknown."""
    triggers: tuple[TriggerSummary, ...]
    """Loads by which they scale."""
    floors: tuple[FloorSummary, ...]
    """Smallest numbers of workers by schedule."""
    down_after_seconds: int
    """Time during which fewer workers must suffice before one goes."""


def _summarise(basis: PlanBasis) -> Iterator[ScalingSummary]:
    """Yield the elastic workers of each role, in the order of the blueprint."""
    by_name = {pool.name: pool for pool in basis[POOLS]}
    for resolved, process in basis.roles:
        if process.scaling is None:
            continue
        pool = by_name[resolved.pool.name]
        hourly = pool.usd_per_hour_used
        each = None if hourly is None else hourly / pool.accelerators_used * resolved.workers.accelerators
        yield ScalingSummary(
            model=resolved.model.name,
            deployment=resolved.deployment.name,
            name=process.name,
            workers_least=process.scaling.least,
            workers_most=process.scaling.most,
            usd_per_hour_least=_times(each, process.scaling.least),
            usd_per_hour_most=_times(each, process.scaling.most),
            triggers=tuple(
                TriggerSummary(
                    name=trigger.name,
                    target=trigger.target,
                    per_worker=trigger.metric_type == "AverageValue",
                    why=trigger.why,
                    query=trigger.query,
                )
                for trigger in process.scaling.triggers
            ),
            floors=tuple(
                FloorSummary(start=each.start, end=each.end, time_zone=each.time_zone, workers=each.replicas)
                for each in process.scaling.floors
            ),
            down_after_seconds=process.scaling.down_stabilization_seconds,
        )


def _times(usd_per_hour: float | None, workers: int) -> float | None:
    return None if usd_per_hour is None else round(usd_per_hour * workers, _PRICE_DECIMALS)


def elastic_workers(summary: PlanSummary) -> TextTable:
    """Return the table of elastic workers, which has rows if a role has a range."""
    return TextTable(
        "Elastic workers",
        ("workers", "scale by"),
        ("number", "target", "USD per hour"),
        tuple(row for each in summary[SCALING] for row in _rows(each)),
        tuple(note for each in summary[SCALING] for note in _notes(each)),
    )


def _notes(each: ScalingSummary) -> Iterator[str]:
    """Yield when the number changes by schedule and downwards, and how each target was computed."""
    name = f"{each.model}/{each.deployment}/{each.name}"
    yield (
        f"{name}: The load that needs most workers decides. Workers go at the earliest after "
        f"{each.down_after_seconds} s in which fewer were enough (scaleDownAfterSeconds)."
    )
    for floor in each.floors:
        yield (
            f"{name}, schedule: At least {floor.workers} workers from '{floor.start}' to '{floor.end}' "
            f"({floor.time_zone}; minute, hour, day, month, weekday)."
        )
    for trigger in each.triggers:
        yield f"{name}, {trigger.name}: {trigger.why}"


def _rows(each: ScalingSummary) -> Iterator[tuple[str, ...]]:
    """Yield a row per load. Prices are those of all nodes' devices that the workers hold."""
    for trigger in each.triggers:
        yield (
            f"{each.model}/{each.deployment}/{each.name}",
            trigger.name,
            f"{each.workers_least:,} to {each.workers_most:,}",
            f"{number(trigger.target, 10)}{' per worker' if trigger.per_worker else ''}",
            f"{usd(each.usd_per_hour_least)} to {usd(each.usd_per_hour_most)}",
        )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the ranges of elastic workers, and what moves them."""
    if summary[SCALING]:
        yield Label.ELASTIC, few(map(_range_in_short, summary[SCALING]))


def _range_in_short(each: ScalingSummary) -> str:
    loads = ", ".join(trigger.name for trigger in each.triggers)
    schedule = ", and a schedule" if each.floors else ""
    return (
        f"{each.workers_least:,} to {each.workers_most:,} {each.model}/{each.deployment} by {loads}{schedule}"
    )


SCALING = PlanSection("scaling", lambda basis: tuple(_summarise(basis)), _in_short, (elastic_workers,))
