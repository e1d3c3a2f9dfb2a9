"""What models leave free of a pool, and the images that its nodes need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from inference_blueprints.serving.nodes.node_share import node_capacity
from inference_blueprints.serving.types import Accelerators, Process, ServingPlan
from inference_blueprints.spec.types import Pool


def pool_images(plan: ServingPlan, pool: str) -> tuple[str, ...]:
    """Return the images of the processes on a pool's nodes, sorted, without duplicates.

    The plan does not contain the images of Kubernetes' own pods, which are small.
    """
    images = {
        image
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
        if process.pool == pool
        for image in (process.image, *(sidecar.image for sidecar in process.sidecars))
    }
    return tuple(sorted(images))


def images_digest(images: Iterable[str]) -> str:
    """Return an identifier of a set of images: 32 hexadecimal digits of a SHA-256.

    images: Image references, in any order.
    """
    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class PoolQuota:
    """Resources of a pool that all jobs together may request."""

    cpu: int
    memory_mib: int
    accelerators: Accelerators | None
    """Devices, possibly 0; None for a pool without accelerators."""

    @property
    def resources(self) -> Mapping[str, str]:
        """The quota in Kubernetes' form: quantity by resource."""
        quota = {"cpu": str(self.cpu), "memory": f"{self.memory_mib}Mi"}
        if self.accelerators and self.accelerators.resource_name:
            quota[self.accelerators.resource_name] = str(self.accelerators.count)
        return quota


def pool_quota(pool: Pool, plan: ServingPlan) -> PoolQuota:
    """Return the capacity of a pool at its maximum, minus the requests of the models' workers on it.

    All nodes count as the pool's largest instance type, as in Karpenter's limits: no more jobs can be
    admitted than it may start. If it starts smaller nodes, pods of admitted jobs wait for each other.
    """
    types = pool.types
    capacities = [node_capacity(each) for each in types]
    workers = list(_workers(pool, plan))

    def left(a_node: int, taken: int) -> int:
        return max(0, pool.nodes.max * a_node - taken)

    resource = types[0].device_resource
    devices = left(
        max(each.device_count for each in types), sum(each.pods * each.resources.devices for each in workers)
    )
    return PoolQuota(
        cpu=left(
            max(each.cpu for each in capacities), sum(each.pods * each.resources.cpu for each in workers)
        ),
        memory_mib=left(
            max(each.memory_mib for each in capacities),
            sum(each.pods * each.resources.memory_mib for each in workers),
        ),
        accelerators=Accelerators(resource, devices) if resource else None,
    )


def _workers(pool: Pool, plan: ServingPlan) -> Iterator[Process]:
    """Yield the models' processes that run on the pool."""
    for model in plan.models:
        for deployment in model.deployments:
            yield from (process for process in deployment.processes if process.pool == pool.name)
