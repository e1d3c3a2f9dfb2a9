"""What the capacity shift moves, in the plan's tables."""

from __future__ import annotations

from inference_blueprints.report.figures import PlanSummary
from inference_blueprints.report.tables.text_table import TextTable


def capacity_shift(summary: PlanSummary) -> TextTable:
    """Return the table of the capacity shift, which has rows if the blueprint has the section."""
    first = next(iter(summary.shift), None)
    notes: tuple[str, ...] = ()
    if first:
        acts = "carried out" if first.carried_out else "recorded, and not carried out"
        notes = (
            f"Decisions are {acts}. Floors cover what the demand may reach within "
            f"{first.reclaim_seconds} s, with a margin of {first.safety_percent} %; "
            "how, and how to freeze it: docs/capacity-shift.md.",
        )
    return TextTable(
        "Capacity shift",
        ("workers", "pool"),
        ("floor", "requests per worker", "places of batch"),
        tuple(
            (
                each.workers,
                each.pool,
                f"{each.floor_least} to {each.floor_most}",
                f"{each.requests_per_worker:g}",
                f"0 to {each.batch_places}" if each.batch_places else "none",
            )
            for each in summary.shift
        ),
        notes,
    )
