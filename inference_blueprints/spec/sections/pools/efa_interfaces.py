"""Rules on Elastic Fabric Adapters."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.deployments import PlacedWorkers, each_placement
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Pool, Spec
from inference_blueprints.spec.wording import Path, quote
from inference_catalog.efa import efa_layouts_are_one, efa_share, first_card_has_efa
from inference_contracts.errors import Finding


@rule
def every_type_has_efa(spec: Spec) -> Iterator[Finding]:
    """Check that a pool with EFA has only instance types with EFA."""
    for index, pool in _pools_with_efa(spec):
        without = [each.name for each in pool.types if not each.efa_interfaces]
        if without:
            names = ", ".join(quote(name) for name in without)
            message = f"got true, {names} have no EFA; remove them from 'instanceTypes', or 'efa'"
            if len(without) == 1:
                message = f"got true, {names} has no EFA; remove it from 'instanceTypes', or 'efa'"
            yield Finding(("spec", "pools", index, "efa"), message)


@rule
def layouts_are_alike(spec: Spec) -> Iterator[Finding]:
    """Check that instance types have one EFA layout if nodes are kept, or if the first card has no EFA."""
    # Kept nodes start without a pod that requests EFA, and Karpenter would put an EFA on the first card.
    for index, pool in _pools_with_efa(spec):
        known = [each for each in pool.types if each.efa_interfaces]
        spelled_out = pool.nodes.min or not all(first_card_has_efa(each) for each in known)
        if spelled_out and known and not efa_layouts_are_one(known):
            got = ", ".join(f"{each.name} ({each.efa_interfaces} EFA)" for each in known)
            reason = "'nodes.min'" if pool.nodes.min else "a first network card without EFA"
            message = (
                f"got {got}; with {reason} all types of a pool must have the same interfaces; make one "
                "pool per layout"
            )
            yield Finding(("spec", "pools", index, "instanceTypes"), message)


@rule
def replica_has_an_interface(spec: Spec) -> Iterator[Finding]:
    """Check that the share of a replica has at least one whole EFA interface."""
    for placed, pool in each_placement(spec):
        size = placed.workers.accelerators
        for each in pool.types if pool.efa else ():
            if each.efa_interfaces and each.accelerator_count and not efa_share(each, size):
                minimum = -(-each.accelerator_count // each.efa_interfaces)
                message = (
                    f"got {size}, but pool '{pool.name}' has efa and {each.name} has {each.efa_interfaces} "
                    f"EFA for {each.accelerator_count} accelerators; use {minimum} or more, or remove 'efa'"
                )
                yield Finding((*placed.path, "tensorParallelSize"), message)
                break


@rule
def efa_stays_in_one_zone(spec: Spec) -> Iterator[Finding]:
    """Check that nodes with EFA are in one zone, because EFA does not cross zones."""
    for index, pool in _pools_with_efa(spec):
        if not stays_in_one_zone(pool):
            message = (
                f"nodes of {quote(pool.name)} may be in several zones, and EFA does not cross zones; "
                "choose one with 'availabilityZone'"
            )
            yield Finding(("spec", "pools", index, "efa"), message, "warning")


@rule
def roles_are_in_one_zone(spec: Spec) -> Iterator[Finding]:
    """Check that prefill and decode on pools with EFA are in one zone.

    "EFA traffic can't cross Availability Zones or VPCs" (Amazon EC2 User Guide, "Elastic Fabric Adapter").
    """
    first: dict[Path, tuple[PlacedWorkers, Pool]] = {}
    for placed, pool in each_placement(spec):
        if not (pool.efa and pool.availability_zone):
            continue
        other, others_pool = first.setdefault(placed.deployment.path, (placed, pool))
        if others_pool.availability_zone != pool.availability_zone:
            message = (
                f"got {quote(pool.name)} in {pool.availability_zone}, {other.role} is on "
                f"{quote(others_pool.name)} in {others_pool.availability_zone}, and EFA does not cross "
                "zones; use pools in one zone"
            )
            yield Finding((*placed.path, "pool"), message)


def stays_in_one_zone(pool: Pool) -> bool:
    """Return whether all nodes of a pool start in one zone."""
    reserved = pool.purchase.reservation or pool.purchase.capacity_block
    return pool.availability_zone is not None or bool(reserved and reserved.id)


def _pools_with_efa(spec: Spec) -> Iterator[tuple[int, Pool]]:
    """Yield the pools with EFA."""
    return ((index, pool) for index, pool in usable(spec.pools) if pool.efa)
