"""The dates of Capacity Blocks, and what the present time means for them.

The rules that every file must keep do not look at the clock; these findings do. They are warnings, because a
platform is still read, checked and removed after its block has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding


def moment(text: str) -> datetime | None:
    """Return a time of the blueprint; None if the calendar does not have it, such as February 30.

    text: A time in UTC, such as ``2026-12-01T11:30:00Z``.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def format_time(time: datetime) -> str:
    """Return a time as messages spell it."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def dated_findings(blueprint: Blueprint, now: datetime) -> Iterator[Finding]:
    """Warn of Capacity Blocks that have not started or have ended.

    blueprint: The blueprint, which may have invalid values.
    now: The present time, with a time zone.
    """
    for index, pool in usable(blueprint.spec.pools):
        block = pool.purchase.capacity_block
        if block is None:
            continue
        path = ("spec", "pools", index, "purchase", "capacityBlock")
        starts = moment(block.starts) if block.starts else None
        ends = moment(block.ends) if block.ends else None
        if ends and ends <= now:
            message = (
                f"the block of pool {quote(pool.name)} ended at {format_time(ends)}, and no node of the pool "
                "starts; buy another block, and set its 'id' and dates"
            )
            yield Finding((*path, "ends"), message, "warning")
        elif starts and starts > now:
            message = (
                f"the block of pool {quote(pool.name)} starts at {format_time(starts)}; until "
                f"then no node of "
                "the pool starts, and its workers wait"
            )
            yield Finding((*path, "starts"), message, "warning")
