"""Which workers share a node: the packing behind node counts, prices and the picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from inference_blueprints.serving.types import Process, ServingPlan
from inference_catalog import InstanceType


@dataclass(frozen=True, slots=True)
class Worker:
    """One running process with the names that identify it."""

    model: str
    deployment: str
    process: Process
    """The process, of which this is one replica, or what one has on a node."""

    @property
    def accelerator_count(self) -> int:
        """Devices that it holds."""
        accelerators = self.process.resources.accelerators
        return accelerators.count if accelerators else 0

    @property
    def demand(self) -> tuple[int, int, int]:
        """Devices, vCPUs and MiB that it takes of its node."""
        resources = self.process.resources
        return self.accelerator_count, resources.cpu, resources.memory_mib


@dataclass(slots=True)
class PackedNode:
    """One node and what runs on it."""

    instance_type: InstanceType
    """Its EC2 instance type."""
    workers: list[Worker] = field(default_factory=list)
    """The workers placed on it so far."""

    def has_room(self, worker: Worker) -> bool:
        """Return whether the worker fits beside those that are there."""
        size = self.instance_type.accelerator_count, self.instance_type.vcpu, self.instance_type.memory_mib
        demands = zip(*(placed.demand for placed in (*self.workers, worker)), strict=True)
        return all(sum(demand) <= limit for demand, limit in zip(demands, size, strict=True))


def roles_of_pool(plan: ServingPlan, pool: str) -> list[Worker]:
    """Return one replica of every role on a pool, in the plan's order."""
    return [
        Worker(model.name, deployment.name, process)
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
        if process.pool == pool
    ]


def workers_of_pool(plan: ServingPlan, pool: str) -> list[Worker]:
    """Return every replica that runs on a pool, or its part of a node, in the plan's order.

    On a pool that models share by the hour, these are the replicas that fit it together.
    """
    return [each for each in roles_of_pool(plan, pool) for _ in range(each.process.pods_together)]


def place(workers: Iterable[Worker], instance_type: InstanceType) -> list[PackedNode] | None:
    """Pack workers onto as few nodes of one type as first-fit decreasing finds.

    The scheduler may spread them over more nodes while a rollout is under way, never over fewer.

    instance_type: The type that every node has.
    Returns: The nodes; None when a worker is larger than a node of this type.
    """
    nodes: list[PackedNode] = []
    by_demand = sorted(workers, key=lambda worker: worker.demand, reverse=True)
    for _, alike in groupby(by_demand, key=lambda worker: worker.demand):
        first_with_room = 0
        for worker in alike:
            while first_with_room < len(nodes) and not nodes[first_with_room].has_room(worker):
                first_with_room += 1
            if first_with_room == len(nodes):
                nodes.append(PackedNode(instance_type))
                if not nodes[-1].has_room(worker):
                    return None
            nodes[first_with_room].workers.append(worker)
    return nodes


def cheapest_placement(workers: Iterable[Worker], types: Iterable[InstanceType]) -> list[PackedNode]:
    """Place workers on the one instance type that costs least for them together.

    types: The pool's types; those without a known price come after those with one.
    Returns: The nodes, all of one type.
    Raises ValueError if no type holds every worker, which a valid plan excludes.
    """
    workers = list(workers)
    placements = [nodes for kind in types if (nodes := place(workers, kind)) is not None]
    if not placements:
        raise ValueError("no instance type of the pool holds every worker of the plan")
    return min(placements, key=_cost)


def _cost(nodes: list[PackedNode]) -> tuple[bool, float, int]:
    """Order placements by price, unknown prices last."""
    prices = [node.instance_type.usd_per_hour for node in nodes]
    return None in prices, sum(price for price in prices if price is not None), len(nodes)
