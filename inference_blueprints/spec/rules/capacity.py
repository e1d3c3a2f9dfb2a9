"""Rules on whether replicas find room on their pool's nodes, and keep it when a node is lost.

A replica does not span nodes. The nodes that a pool needs are its replicas' accelerators over those of a
node, rounded up: exact while sizes are powers of two, as on NVIDIA's types, and never too many elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.deployments import PlacedWorkers, each_placement
from inference_blueprints.spec.rules.pools import known_instance_types
from inference_blueprints.spec.types import Model, Pool


@dataclass(frozen=True, slots=True)
class _Demand:
    """What is asked of a pool: the workers on it, and the devices of its largest node."""

    placed: list[PlacedWorkers]
    accelerators_per_node: int

    @property
    def accelerators(self) -> int:
        return sum(item.workers.replicas * item.workers.tensor_parallel_size for item in self.placed)

    @property
    def nodes(self) -> int:
        return -(-self.accelerators // self.accelerators_per_node)

    @property
    def arithmetic(self) -> str:
        """The sum in words."""
        terms = " + ".join(
            f"{item.workers.replicas} * {item.workers.tensor_parallel_size} ({item.name})"
            for item in self.placed
        )
        return f"{terms} = {self.accelerators} accelerators at {self.accelerators_per_node} a node"


def replica_fits_a_node(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a replica's accelerators are on one node, and leave none that no replica can use."""
    for placed, pool in each_placement(models, pools):
        size = placed.workers.tensor_parallel_size
        for instance_type in known_instance_types(pool):
            count = instance_type.accelerator_count
            if count and count % size:
                sizes = [str(divisor) for divisor in range(1, count + 1) if count % divisor == 0]
                message = (
                    f"got {size}, which must divide the accelerators of a node of pool '{pool.name}': "
                    f"{instance_type.name} has {count}; use {' or '.join(sizes)}"
                )
                yield Finding((*placed.path, "tensorParallelSize"), message)
                break


def replicas_fit_the_pool(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that all replicas of a pool fit the nodes that it may hold."""
    for index, demand in _demands(models, pools):
        maximum = pools[index].nodes.max
        if demand.nodes > maximum:
            message = (
                f"got {maximum}, its deployments need {demand.nodes} nodes: {demand.arithmetic}; "
                f"raise it to {demand.nodes}, or lower replicas"
            )
            yield Finding(("spec", "pools", index, "nodes", "max"), message)


def pool_has_headroom(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a pool has a spare node for the replicas of a lost one."""
    for index, demand in _demands(models, pools):
        maximum = pools[index].nodes.max
        if demand.nodes == maximum:
            message = (
                f"replicas fill all {maximum} nodes: a lost one is missed until replaced; allow one more"
            )
            yield Finding(("spec", "pools", index, "nodes", "max"), message, "warning")


def deployment_survives_a_node(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a deployment answers while a replica is updated, moved or lost."""
    for placed, pool in each_placement(models, pools):
        if placed.workers.replicas > 1:
            continue
        path = (*placed.path, "replicas")
        yield Finding(
            path, "one replica does not answer while it is updated or moved; two keep answering", "warning"
        )
        if pool.purchase.spot and not pool.purchase.spot.on_demand_fallback:
            message = (
                f"the one replica stays down while pool '{pool.name}' gets no spot capacity; add a replica, "
                "or set onDemandFallback"
            )
            yield Finding(path, message, "warning")


def _demands(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[tuple[int, _Demand]]:
    """Yield what each pool is asked for by the replicas that its nodes can hold at all."""
    placements = list(each_placement(models, pools))
    for index, pool in pools.items():
        count = max(
            (instance_type.accelerator_count for instance_type in known_instance_types(pool)), default=0
        )
        fitting = [
            placed
            for placed, chosen in placements
            if chosen is pool and count % placed.workers.tensor_parallel_size == 0
        ]
        if count and fitting:
            yield index, _Demand(fitting, count)
