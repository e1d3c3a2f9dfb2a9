"""Rules on how a pool's instances are paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.types import Pool, ReservedCapacity
from inference_blueprints.spec.wording import Path, listing, quote

#: What AWS sells as Capacity Blocks (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-using.html).
CAPACITY_BLOCK_FAMILIES = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "trn1", "trn2")

#: AWS's own limits on tags; a tag that no reservation can carry would select none for ever.
_MAXIMUM_TAG_KEY, _MAXIMUM_TAG_VALUE = 128, 256


def capacity_block_is_sold(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that AWS sells Capacity Blocks of the instance types."""
    for index, pool in pools.items():
        if pool.purchase.capacity_block is None:
            continue
        for place, name in enumerate(pool.instance_types):
            if name.partition(".")[0] not in CAPACITY_BLOCK_FAMILIES:
                families = listing(CAPACITY_BLOCK_FAMILIES)
                message = f"got {quote(name)}, Capacity Blocks are sold of the families {families}"
                yield Finding(("spec", "pools", index, "instanceTypes", place), message)


def reservation_is_of_one_type(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a reservation named by its id goes with one instance type, for it is of one."""
    for path, pool, reserved in _reserved(pools):
        if reserved.id and len(pool.instance_types) > 1:
            count = len(pool.instance_types)
            message = (
                f"got one reservation for {count} instance types, and it is of one; name that type alone, "
                "or select by 'tags'"
            )
            yield Finding((*path, "id"), message)


def reservation_tags_can_exist(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a reservation can carry the tags by which it is selected."""
    for path, _, reserved in _reserved(pools):
        for key, value in (reserved.tags or {}).items():
            if not 0 < len(key) <= _MAXIMUM_TAG_KEY or not 0 < len(value) <= _MAXIMUM_TAG_VALUE:
                message = (
                    f"got {quote(key)}: {quote(value)}, expected a key of 1 to {_MAXIMUM_TAG_KEY} characters "
                    f"and a value of 1 to {_MAXIMUM_TAG_VALUE}; '*' is any value"
                )
                yield Finding((*path, "tags", key), message)


def _reserved(pools: Mapping[int, Pool]) -> Iterator[tuple[Path, Pool, ReservedCapacity]]:
    """Yield each pool of reserved capacity with its selection and that one's place."""
    for index, pool in pools.items():
        reserved = pool.purchase.reservation or pool.purchase.capacity_block
        if reserved:
            yield ("spec", "pools", index, "purchase", pool.purchase.chosen), pool, reserved
