"""What the pools of all targets share."""

from __future__ import annotations

from inference_blueprints.spec.types import Purchase
from inference_constructs.capacity import ReservedInstances


def reserved_instances(purchase: Purchase) -> ReservedInstances | None:
    """Return the reserved capacity of a purchase option; None if it reserves nothing.

    purchase: The pool's section of the blueprint.
    """
    if purchase.reservation:
        return ReservedInstances(purchase.reservation.model_dump(exclude_none=True), "default")
    if purchase.capacity_block:
        return ReservedInstances(
            purchase.capacity_block.model_dump(include={"id", "tags"}, exclude_none=True), "capacity-block"
        )
    return None
