"""What runs the hosts of a pool on Amazon ECS: Managed Instances, or an Auto Scaling group, and why.

Limits of Managed Instances: Amazon ECS Developer Guide, "Amazon ECS Managed Instances task definition
differences" (no shared memory size, no folders of the host), and InstanceLaunchTemplate of the API reference
(no network interfaces of one's own, no smallest or largest number of hosts).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal

from inference_blueprints.serving.types import Process, ServingPlan
from inference_blueprints.spec.types import Blueprint, Pool
from inference_catalog.ecs_hosts import host_kind
from inference_contracts.records import dataclass

#: What runs the hosts of a pool: Managed Instances, or an Auto Scaling group.
EcsHosts = Literal["managed", "group"]
#: Longest time that a task of Managed Instances gets to stop. Longer ones are documented only for other hosts
#: (``stopTimeout`` of ContainerDefinition, API reference).
MAX_MANAGED_STOP_SECONDS = 120


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """What runs the hosts of a pool."""

    pool: str
    kind: EcsHosts
    """``managed`` for Managed Instances, ``group`` for an Auto Scaling group."""
    reason: str
    """Why, in words."""


def pool_capacities(blueprint: Blueprint, plan: ServingPlan) -> tuple[PoolCapacity, ...]:
    """Return what runs each pool, in the order of the blueprint.

    blueprint: A blueprint for ECS.
    """
    section = blueprint.spec.cluster.ecs
    never = section is not None and section.managed_instances == "never"
    return tuple(_capacity(pool, _workers(plan, pool), never=never) for pool in blueprint.spec.pools)


def managed_pools(blueprint: Blueprint, plan: ServingPlan) -> frozenset[str]:
    """Return the names of the pools that Managed Instances run."""
    return frozenset(each.pool for each in pool_capacities(blueprint, plan) if each.kind == "managed")


def measured_pools(blueprint: Blueprint, plan: ServingPlan) -> tuple[str, ...]:
    """Return the names of the pools whose hosts run the exporter of GPU metrics.

    These are Auto Scaling groups with GPUs. On Managed Instances, ECS replaces a host whose exporter stops
    (Amazon ECS Developer Guide, "Amazon ECS Managed Daemons"), so none runs there.
    """
    with_gpus = {
        pool.name for pool in blueprint.spec.pools if all(host_kind(each) == "gpu" for each in pool.types)
    }
    groups = (each.pool for each in pool_capacities(blueprint, plan) if each.kind == "group")
    return tuple(pool for pool in groups if pool in with_gpus)


def _capacity(pool: Pool, workers: list[Process], *, never: bool) -> PoolCapacity:
    if never:
        return PoolCapacity(pool.name, "group", "the blueprint says so")
    reason = next(chain(_of_pool(pool), _of_workers(workers)), None)
    if reason:
        return PoolCapacity(pool.name, "group", reason)
    return PoolCapacity(pool.name, "managed", "its workers fit the limits of Managed Instances")


def _of_pool(pool: Pool) -> Iterator[str]:
    """Yield what Managed Instances lack that the pool's settings need."""
    if any(host_kind(each) == "neuron" for each in pool.types):
        yield "a task names the Neuron devices of its host, which boots the image with their driver"
    if pool.efa:
        yield "Managed Instances have no EFA interfaces"
    if pool.purchase.reservation or pool.purchase.capacity_block:
        yield "Managed Instances take reserved capacity only as a group of reservations"
    if pool.purchase.spot and pool.purchase.spot.on_demand_fallback:
        # ECS creates such a service and refuses its updates (terraform-aws-modules/terraform-aws-ecs#410).
        yield "a service on Managed Instances has one capacity provider, and Spot with a fall-back needs two"
    if pool.shared is not None:
        yield "models share it, and Managed Instances have no largest number of hosts"
    if pool.nodes.min:
        yield "Managed Instances have no smallest number of hosts"
    if pool.repaired_by == "gpuHealth":
        yield "ECS itself repairs Managed Instances, and gpuHealth is to do it"


def _of_workers(workers: list[Process]) -> Iterator[str]:
    """Yield what Managed Instances lack that the workers need."""
    for worker in workers:
        accelerators = worker.resources.accelerators
        if accelerators and accelerators.count > 1:
            yield f"Managed Instances have no shared memory for the {accelerators.count} GPUs of a worker"
        if worker.node_cache:
            yield "Managed Instances have no folder in which workers share weights"
        if worker.engine and worker.engine.host_kv_blocks:
            yield "Managed Instances have no shared memory for KV cache of the host"
        if worker.termination_grace_seconds > MAX_MANAGED_STOP_SECONDS:
            yield (
                f"a worker may need {worker.termination_grace_seconds} s to end its streams, "
                f"Managed Instances give it {MAX_MANAGED_STOP_SECONDS}"
            )


def _workers(plan: ServingPlan, pool: Pool) -> list[Process]:
    return [
        process
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.workers
        if process.pool == pool.name
    ]
