"""Rules on whether replicas fit the nodes of their pool, also when a node is lost.

A replica uses a part of one node, or several whole nodes. The number of nodes of a pool is the accelerators
of all replicas divided by the accelerators per node, rounded up. This is exact if sizes are powers of two, as
on NVIDIA types, and otherwise never too high.
"""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.derived import PlacedWorkers, each_placement
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Pool, Spec, Workers
from inference_blueprints.spec.wording import Path, quote
from inference_catalog.node_facts import efa_layouts_are_one, efa_share, first_card_has_efa
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass


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


@dataclass(frozen=True, slots=True)
class _Demand:
    """The workers of a pool, and the devices of its largest node."""

    placed: list[PlacedWorkers]
    accelerators_per_node: int

    @property
    def accelerators(self) -> int:
        return sum(item.workers.maximum * item.workers.accelerators for item in self.placed)

    @property
    def nodes(self) -> int:
        return -(-self.accelerators // self.accelerators_per_node)

    @property
    def arithmetic(self) -> str:
        """The sum as text."""
        terms = " + ".join(
            f"{item.workers.maximum} * {item.workers.accelerators} ({item.name})" for item in self.placed
        )
        return f"{terms} = {self.accelerators} accelerators at {self.accelerators_per_node} per node"


@rule
def replica_fits_a_node(spec: Spec) -> Iterator[Finding]:
    """Check that the accelerators of a replica divide those of a node, or are whole nodes."""
    for placed, pool in each_placement(spec):
        size = placed.workers.accelerators
        for instance_type in pool.types:
            count = instance_type.accelerator_count
            if count and not _fits_nodes(size, count):
                sizes = [str(divisor) for divisor in range(1, count + 1) if count % divisor == 0]
                message = (
                    f"got {_sizes(placed.workers)}, which must divide the accelerators of a node of pool "
                    f"'{pool.name}': {instance_type.name} has {count}; use {' or '.join(sizes)}, or "
                    "whole nodes"
                )
                yield Finding((*placed.path, "tensorParallelSize"), message)
                break


@rule
def replica_across_nodes_has_a_fast_network(spec: Spec) -> Iterator[Finding]:
    """Check that a replica on several nodes has nodes of one size in one zone, with EFA."""
    for placed, pool in each_placement(spec):
        types = pool.types
        counts = sorted({each.accelerator_count for each in types} - {0})
        if not counts or placed.workers.accelerators <= counts[0]:
            continue
        path = (*placed.path, "pool")
        got = (
            f"got {quote(pool.name)}, where a worker of {placed.workers.accelerators} accelerators "
            "spans several nodes"
        )
        if len(counts) > 1:
            several = " and ".join(map(str, counts))
            yield Finding(path, f"{got}, but its nodes have {several} accelerators; make one pool per size")
        elif not pool.efa:
            yield Finding(
                path,
                f"{got} and would be slow over TCP; set efa on the pool, with instance types that have EFA",
            )
        elif not stays_in_one_zone(pool):
            yield Finding(
                path, f"{got}, but its nodes may be in several zones; set availabilityZone on the pool"
            )


def _fits_nodes(size: int, count: int) -> bool:
    """Whether a worker of this size divides a node, or uses whole nodes."""
    return count % size == 0 or size % count == 0


def _sizes(workers: Workers) -> str:
    """Return the accelerators of a worker, with the product if it has several factors."""
    if workers.accelerators == workers.tensor_parallel_size:
        return str(workers.accelerators)
    sizes = workers.tensor_parallel_size, workers.pipeline_parallel_size, workers.data_parallel_size
    product = " * ".join(map(str, sizes))
    return f"{product} = {workers.accelerators} (tensor * pipeline * data parallel size)"


@rule
def replicas_fit_the_pool(spec: Spec) -> Iterator[Finding]:
    """Check that all replicas of a pool fit its nodes."""
    for index, demand in _demands(spec):
        maximum = spec.pools[index].nodes.max
        if demand.nodes > maximum and spec.pools[index].shared is None:
            message = (
                f"got {maximum}, its deployments need {demand.nodes} nodes: {demand.arithmetic}; "
                f"raise it to {demand.nodes}, or lower replicas"
            )
            yield Finding(("spec", "pools", index, "nodes", "max"), message)


@rule
def pool_has_headroom(spec: Spec) -> Iterator[Finding]:
    """Check that a pool has a spare node for the replicas of a lost one."""
    for index, demand in _demands(spec):
        maximum = spec.pools[index].nodes.max
        if demand.nodes == maximum:
            message = (
                f"replicas fill all {maximum} nodes: if one is lost, its replicas are down until it is "
                "replaced; allow one more node"
            )
            yield Finding(("spec", "pools", index, "nodes", "max"), message, "warning")


@rule
def pool_keeps_no_idle_nodes(spec: Spec) -> Iterator[Finding]:
    """Check that a pool keeps at most one node more than its deployments fill, unless jobs use the others."""
    if spec.queueing is not None:
        return
    for index, demand in _demands(spec):
        pool = spec.pools[index]
        smallest = min(each.accelerator_count for each in pool.types) or 1
        filled, minimum = -(-demand.accelerators // smallest), pool.nodes.min
        if minimum > filled + 1:
            message = (
                f"got {minimum}, its deployments fill at most {filled}: {demand.accelerators} "
                f"accelerators at "
                f"{smallest} per node; the other {minimum - filled} nodes are billed and hold no worker; "
                f"lower it "
                f"to {filled + 1} or less"
            )
            yield Finding(("spec", "pools", index, "nodes", "min"), message, "warning")


@rule
def deployment_survives_a_node(spec: Spec) -> Iterator[Finding]:
    """Check that a deployment has more than one replica, so that it answers during updates."""
    for placed, pool in each_placement(spec):
        if placed.workers.minimum > 1 or placed.workers.is_lent:
            continue
        path = (*placed.path, "replicas")
        yield Finding(
            path, "a single replica does not answer while it is updated or moved; use two or more", "warning"
        )
        if pool.purchase.spot and not pool.purchase.spot.on_demand_fallback:
            message = (
                f"the only replica is down while pool '{pool.name}' has no spot capacity; add a replica, "
                "or set onDemandFallback"
            )
            yield Finding(path, message, "warning")


def _demands(spec: Spec) -> Iterator[tuple[int, _Demand]]:
    """Yield the demand of each pool, of replicas that fit its nodes."""
    placements = list(each_placement(spec))
    for index, pool in usable(spec.pools):
        count = max((instance_type.accelerator_count for instance_type in pool.types), default=0)
        fitting = [
            placed
            for placed, chosen in placements
            if chosen is pool and _fits_nodes(placed.workers.accelerators, count)
        ]
        if count and fitting:
            yield index, _Demand(fitting, count)
