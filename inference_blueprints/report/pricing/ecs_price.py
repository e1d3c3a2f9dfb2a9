"""Prices of AWS Fargate, and of what a platform on ECS has instead of a control plane and system nodes.

Prices of us-east-1, Linux on x86 (https://aws.amazon.com/fargate/pricing/, 2026-06). Those of Fargate Spot
change and are lower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.render.ecs.metrics_task import CPU_UNITS, MEMORY_MIB
from inference_blueprints.report.figures import CostItem
from inference_blueprints.serving.estimates.request_estimates import frontend_size
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.known_callers import resources_beside
from inference_catalog.ecs_hosts import fargate_size
from inference_contracts.ecs_names import DISCOVERY_MEMBERS
from inference_contracts.units import MIB_PER_GIB

USD_PER_VCPU_HOUR = 0.04048
USD_PER_GIB_HOUR = 0.004445
_UNITS = 1024
# Size of a member of the discovery store.
_MEMBER_VCPU, _MEMBER_GIB = 0.5, 1
# Size of the task that keeps its users and roles.
_ROLES_VCPU, _ROLES_GIB = 0.25, 0.5


def ecs_items(roles: Sequence[ResolvedWorkers], hours: int, *, has_managed_hosts: bool) -> Iterator[CostItem]:
    """Yield the parts of the cluster. A cluster itself has no price.

    roles: Workers of every role of every deployment.
    hours: Hours of a month.
    has_managed_hosts: Whether Managed Instances run the hosts of any pool.
    """
    usd, tasks = 0.0, 0
    routed = {each.release: each for each in roles if not STACKS[each.model.stack.chosen].serves_directly}
    for each in routed.values():
        wanted = frontend_size(each.model, each.traffic)
        cpu, memory_mib = resources_beside(each.blueprint.spec)
        size = fargate_size(wanted.cpu + cpu, wanted.memory_mib + memory_mib)
        tasks += wanted.replicas
        usd += wanted.replicas * task_usd_per_hour(size.cpu_units / _UNITS, size.memory_mib / MIB_PER_GIB)
    if routed:
        yield CostItem("frontends on Fargate", f"{tasks} tasks all month", round(usd * hours, 2))
        store = DISCOVERY_MEMBERS * task_usd_per_hour(_MEMBER_VCPU, _MEMBER_GIB) + task_usd_per_hour(
            _ROLES_VCPU, _ROLES_GIB
        )
        yield CostItem(
            "discovery store on Fargate", f"{DISCOVERY_MEMBERS + 1} tasks all month", round(store * hours, 2)
        )
        yield CostItem("EFS of the discovery store", "some MiB, and what it writes", None)
    if has_managed_hosts:
        yield CostItem(
            "fee of ECS Managed Instances", "for pools whose hosts ECS runs, by instance type", None
        )


def metrics_task_item(hours: int) -> CostItem:
    """Return the task that measures a platform.

    hours: Hours of a month.
    """
    usd = task_usd_per_hour(CPU_UNITS / _UNITS, MEMORY_MIB / MIB_PER_GIB)
    return CostItem("Prometheus on Fargate", "1 task all month", round(usd * hours, 2))


def task_usd_per_hour(vcpu: float, gib: float) -> float:
    """Return the price of an hour of a task, in US dollars."""
    return vcpu * USD_PER_VCPU_HOUR + gib * USD_PER_GIB_HOUR
