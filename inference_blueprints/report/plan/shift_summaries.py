"""Summarises what the capacity shift moves."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import ShiftSummary
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint


def summarise_shift(blueprint: Blueprint, plan: ServingPlan) -> Iterator[ShiftSummary]:
    """Yield the elastic workers whose floors the shift sets; nothing without the section.

    Parameters
    ----------
    blueprint, plan
        The blueprint, and its serving plan.
    """
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
            batch_places=shift.batch_places.get(each.model, 0),
            carried_out=shift.action == "shift",
            safety_percent=shift.safety_percent,
            reclaim_seconds=shift.reclaim_seconds,
        )
