"""Ranges and targets of elastic workers in the plan's tables, with the calculation."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import PlanSummary, ScalingSummary
from inference_blueprints.report.plan.tables.cells import usd
from inference_blueprints.report.tables.text_table import TextTable


def elastic_workers(summary: PlanSummary) -> TextTable:
    """Return the table of elastic workers, which has rows if a role has a range."""
    return TextTable(
        "Elastic workers",
        ("workers", "scale by"),
        ("number", "target", "USD per hour"),
        tuple(row for each in summary.scaling for row in _rows(each)),
        tuple(note for each in summary.scaling for note in _notes(each)),
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
            f"{each.workers_least} to {each.workers_most}",
            f"{trigger.target:,.10g}{' per worker' if trigger.per_worker else ''}",
            f"{usd(each.usd_per_hour_least)} to {usd(each.usd_per_hour_most)}",
        )
