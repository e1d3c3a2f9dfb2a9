"""What the capacity shift moves."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import few
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.number_text import number
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class ShiftSummary:
    """The capacity shift of one kind of elastic workers."""

    workers: str
    """Name of their ScaledObject."""
    pool: str
    floor_least: int
    floor_most: int
    """`floor_least`, `floor_most`: Range of their floor."""
    requests_per_worker: float
    """Requests in flight that one worker carries within the objectives."""
    batch_places: int
    """Most places of batch in their model. Zero if batch does not use them."""
    carried_out: bool
    """Whether decisions are carried out, or only recorded."""
    safety_percent: int
    """Margin above the forecast."""
    reclaim_seconds: int
    """How far it looks ahead, in seconds: on a shared pool the hand-over time of the role."""


def summarise_shift(blueprint: Blueprint, plan: ServingPlan) -> Iterator[ShiftSummary]:
    """Yield the elastic workers whose floors the shift sets; nothing without the section."""
    shift = shift_configuration_of(blueprint, plan)
    if shift is None:
        return
    for each in shift.workers:
        yield ShiftSummary(
            workers=each.name,
            pool=each.pool,
            floor_least=each.least,
            floor_most=each.most,
            requests_per_worker=round(each.capacity, 2),
            batch_places=shift.batch_places.get(each.model, 0) if shift.serves_batch(each) else 0,
            carried_out=shift.action == "shift",
            safety_percent=shift.safety_percent,
            reclaim_seconds=round(
                shift.reclaim_seconds if each.handover_seconds is None else each.handover_seconds
            ),
        )


def capacity_shift(summary: PlanSummary) -> TextTable:
    """Return the table of the capacity shift, which has rows if the blueprint has the section."""
    first = next(iter(summary[SHIFT]), None)
    notes: tuple[str, ...] = ()
    if first:
        ahead = sorted({each.reclaim_seconds for each in summary[SHIFT]})
        within = " to ".join(str(each) for each in dict.fromkeys((ahead[0], ahead[-1])))
        acts = "carried out" if first.carried_out else "recorded, and not carried out"
        notes = (
            f"Decisions are {acts}. Floors cover what the demand may reach within "
            f"{within} s, with a margin of {first.safety_percent} %; "
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
                number(each.requests_per_worker, 6),
                f"0 to {each.batch_places}" if each.batch_places else "none",
            )
            for each in summary[SHIFT]
        ),
        notes,
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield what the shift moves, and whether it does."""
    found = summary[SHIFT]
    if not found:
        return
    acts = "" if found[0].carried_out else "only records: "
    floors = (
        f"{each.workers} {each.floor_least} to {each.floor_most}"
        + (f", {each.batch_places} places of batch" if each.batch_places else "")
        for each in found
    )
    yield Label.OPERATION, f"capacity shift {acts}{few(floors)}"


SHIFT = PlanSection(
    "shift", lambda basis: tuple(summarise_shift(basis.blueprint, basis.plan)), _in_short, (capacity_shift,)
)
