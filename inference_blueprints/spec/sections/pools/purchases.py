"""Rules on reservations and Capacity Blocks."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.capacity_dates import moment
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import CapacityBlock, Pool, ReservedCapacity, Spec
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding

#: Families that AWS sells as Capacity Blocks
#: (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-using.html).
CAPACITY_BLOCK_FAMILIES = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "trn1", "trn2")

#: AWS's limits on tags. A tag beyond them could never select a reservation.
_MAXIMUM_TAG_KEY, _MAXIMUM_TAG_VALUE = 128, 256


@rule
def capacity_block_is_sold(spec: Spec) -> Iterator[Finding]:
    """Check that AWS sells Capacity Blocks of the instance types."""
    for index, pool in usable(spec.pools):
        if pool.purchase.capacity_block is None:
            continue
        for place, name in usable(pool.instance_types):
            if name.partition(".")[0] not in CAPACITY_BLOCK_FAMILIES:
                families = listing(CAPACITY_BLOCK_FAMILIES)
                message = f"got {quote(name)}, AWS sells Capacity Blocks only for the families {families}"
                yield Finding(("spec", "pools", index, "instanceTypes", place), message)


@rule
def block_is_selected_once(spec: Spec) -> Iterator[Finding]:
    """Check that Capacity Blocks are selected either by an id or by tags."""
    for path, block in _blocks(spec):
        given = [key for key, value in (("id", block.id), ("tags", block.tags)) if value is not None]
        if len(given) != 1:
            got = " and ".join(quote(key) for key in given) or "neither"
            yield Finding(path, f"got {got}, expected exactly one of 'id', 'tags'")


@rule
def block_dates_are_of_one_block(spec: Spec) -> Iterator[Finding]:
    """Check that the dates of a Capacity Block are given only with its id."""
    for path, block in _blocks(spec):
        for key, value in (("starts", block.starts), ("ends", block.ends)):
            if value is not None and block.id is None:
                message = "is allowed only with 'id', because tags can select several blocks; remove it"
                yield Finding((*path, key), message)


@rule
def block_dates_exist(spec: Spec) -> Iterator[Finding]:
    """Check that the calendar has the dates of a Capacity Block."""
    for path, block in _blocks(spec):
        for key, value in (("starts", block.starts), ("ends", block.ends)):
            if value and moment(value) is None:
                message = f"got {quote(value)}, which the calendar does not have; correct it"
                yield Finding((*path, key), message)


@rule
def block_starts_before_it_ends(spec: Spec) -> Iterator[Finding]:
    """Check that a Capacity Block starts before it ends."""
    for path, block in _blocks(spec):
        starts, ends = moment(block.starts or ""), moment(block.ends or "")
        if starts and ends and starts >= ends:
            message = f"got {quote(block.ends)}, the block starts at {quote(block.starts)}; correct the dates"
            yield Finding((*path, "ends"), message)


@rule
def reservation_is_of_one_type(spec: Spec) -> Iterator[Finding]:
    """Check that a reservation named by its id is for a pool of one instance type."""
    for path, pool, reserved in _reserved(spec):
        if reserved.id and len(pool.instance_types) > 1:
            count = len(pool.instance_types)
            message = (
                f"got one reservation for {count} instance types, a reservation covers exactly one; list "
                "only that type, or select reservations by 'tags'"
            )
            yield Finding((*path, "id"), message)


@rule
def reservation_tags_can_exist(spec: Spec) -> Iterator[Finding]:
    """Check that a reservation can have the tags that select it."""
    for path, _, reserved in _reserved(spec):
        for key, value in (reserved.tags or {}).items():
            if not 0 < len(key) <= _MAXIMUM_TAG_KEY or not 0 < len(value) <= _MAXIMUM_TAG_VALUE:
                message = (
                    f"got {quote(key)}: {quote(value)}, expected a key of 1 to {_MAXIMUM_TAG_KEY} characters "
                    f"and a value of 1 to {_MAXIMUM_TAG_VALUE}; '*' matches any value"
                )
                yield Finding((*path, "tags", key), message)


def _blocks(spec: Spec) -> Iterator[tuple[Path, CapacityBlock]]:
    """Yield the path and section of each selection of Capacity Blocks."""
    for index, pool in usable(spec.pools):
        if pool.purchase.capacity_block:
            yield ("spec", "pools", index, "purchase", "capacityBlock"), pool.purchase.capacity_block


def _reserved(spec: Spec) -> Iterator[tuple[Path, Pool, ReservedCapacity | CapacityBlock]]:
    """Yield the path, pool and section of each selection of reserved capacity."""
    for index, pool in usable(spec.pools):
        reserved = pool.purchase.reservation or pool.purchase.capacity_block
        if reserved:
            yield ("spec", "pools", index, "purchase", pool.purchase.chosen), pool, reserved
