"""Rules on whether replicas fit the nodes of their pool, also when a node is lost.

A replica uses a part of one node, or several whole nodes. The number of nodes of a pool is the accelerators
of all replicas divided by the accelerators per node, rounded up. This is exact if sizes are powers of two, as
on NVIDIA types, and otherwise never too high.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inference_blueprints.spec.deployments import PlacedWorkers, each_placement
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.sections.pools.efa_interfaces import stays_in_one_zone
from inference_blueprints.spec.types import Spec, Workers
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding


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
        if demand.nodes > maximum:
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
        if placed.workers.minimum > 1:
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
