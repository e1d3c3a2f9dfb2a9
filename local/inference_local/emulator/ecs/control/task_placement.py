"""Where a task runs.

Sources: AWS, "How Amazon ECS places tasks on container instances" (task-placement.html),
task-placement-strategies.html, task-placement-constraints.html; memory counts with shared memory
(amazon-ecs-agent#1149); wording: service-event-messages-list.html.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from inference_local.emulator.ecs.control.cluster_state import (
    ClusterState,
    EcsInstance,
    EcsTask,
    Needs,
    Shape,
)

# Which capacity provider a task of a service goes to. Source: API CapacityProviderStrategyItem.


def choose_provider(strategy: Sequence[Shape], present: Iterable[str]) -> str:
    """Return the provider of the next task.

    Base numbers are filled first. Then the weights divide the tasks beyond the bases. A provider of weight 0
    gets no task beyond its base.

    strategy: Items with ``capacityProvider``, ``base`` and ``weight``.
    present: Provider of each task that the service has.
    """
    counts = Counter(present)
    for item in strategy:
        if counts[item["capacityProvider"]] < int(item.get("base") or 0):
            return str(item["capacityProvider"])
    weighted = [item for item in strategy if int(item.get("weight") or 0) > 0] or list(strategy)

    def share(item: Shape) -> float:
        beyond = counts[item["capacityProvider"]] - int(item.get("base") or 0)
        return (beyond + 1) / max(1, int(item.get("weight") or 0))

    return str(min(weighted, key=share)["capacityProvider"])


_UNIT: Final = 1024


@dataclass(frozen=True)
class FreeResources:
    """What is left of an instance."""

    cpu: int
    """CPU units."""
    memory_mib: int
    """In MiB."""
    gpu_ids: tuple[str, ...]
    """Ids of GPUs that no task has."""
    ports: frozenset[int]
    """Ports that tasks have reserved."""

    def misfit(self, needs: Needs) -> str | None:
        """Return what is missing, in the words of ECS' events, or None."""
        if needs.cpu > self.cpu:
            return "has insufficient CPU units available"
        if needs.memory_mib > self.memory_mib:
            return "has insufficient memory available"
        if needs.gpus > len(self.gpu_ids):
            return "has insufficient GPU resource available"
        if taken := sorted(needs.ports & self.ports):
            return f"is already using a port required by your task ({taken[0]})"
        return None


@dataclass(frozen=True)
class PlacementFailure:
    """No instance takes the task now."""

    reason: str
    """The end of ECS' sentence "was unable to place a task because"."""


class UnknownExpressionError(ValueError):
    """A placement constraint that this stand-in cannot evaluate."""


def needs_of(definition: Shape) -> Needs:
    """Return what a task definition takes from an instance.

    The task's own cpu and memory count, or else the sum over its containers: memoryReservation, or memory
    without it, plus shared memory (API ContainerDefinition; amazon-ecs-agent#1149).
    """
    containers = definition["containerDefinitions"]
    memory = sum(
        int(each.get("memoryReservation") or each.get("memory") or 0)
        + int(each.get("linuxParameters", {}).get("sharedMemorySize") or 0)
        for each in containers
    )
    cpu = sum(int(each.get("cpu") or 0) for each in containers)
    gpus = sum(
        int(need["value"])
        for each in containers
        for need in each.get("resourceRequirements", ())
        if need["type"] == "GPU"
    )
    mode = definition.get("networkMode", "bridge")
    ports = {
        int(mapping.get("hostPort") or (mapping["containerPort"] if mode == "host" else 0))
        for each in containers
        for mapping in each.get("portMappings", ())
        if mode != "awsvpc"
    }
    return Needs(
        _number(definition.get("cpu"), _UNIT, "vcpu") or cpu,
        _number(definition.get("memory"), _UNIT, "gb") or memory,
        gpus,
        frozenset(ports - {0}),
    )


def free_resources(instance: EcsInstance, tasks: Iterable[EcsTask]) -> FreeResources:
    """Return what the tasks on an instance leave. A task gives back what it has when it has stopped."""
    held = list(tasks)
    taken = {gpu for task in held for gpu in task.gpu_ids}
    return FreeResources(
        instance.cpu - sum(task.needs.cpu for task in held),
        instance.memory_mib - sum(task.needs.memory_mib for task in held),
        tuple(gpu for gpu in instance.gpu_ids if gpu not in taken),
        frozenset(port for task in held for port in task.needs.ports),
    )


def place(
    cluster: ClusterState, task: EcsTask, constraints: Sequence[Shape], strategy: Sequence[Shape]
) -> EcsInstance | PlacementFailure:
    """Choose an instance of the task's capacity provider.

    Order of ECS: resources, then constraints, then strategies (task-placement.html).
    """
    candidates = [
        each
        for each in cluster.instances.values()
        if each.takes_tasks and (not task.provider or each.provider == task.provider)
    ]
    if not candidates:
        return PlacementFailure(
            "no container instance met all of its requirements. Reason: No Container Instances were found "
            f"in your capacity provider {task.provider}."
        )
    fitting, closest = [], None
    for each in candidates:
        misfit = free_resources(each, cluster.tasks_on(each.identifier)).misfit(task.needs)
        if misfit is None and not all(_holds(cluster, task, each, rule) for rule in constraints):
            misfit = "does not meet the placement constraints of the task"
        if misfit is None:
            fitting.append(each)
        else:
            closest = closest or (each, misfit)
    if fitting:
        return min(fitting, key=_order(cluster, task, strategy))
    instance, misfit = closest or (candidates[0], "")
    return PlacementFailure(
        "no container instance met all of its requirements. The closest matching container-instance "
        f"{instance.identifier} {misfit}."
    )


def _order(
    cluster: ClusterState, task: EcsTask, strategy: Sequence[Shape]
) -> Callable[[EcsInstance], tuple[object, ...]]:
    """Return the sort key of the strategies, each in turn."""
    siblings = Counter[tuple[str, str]]()
    for other in cluster.tasks_of(task.service) if task.service else ():
        if other.instance in cluster.instances:
            instance = cluster.instances[other.instance]
            siblings["instanceId", instance.identifier] += 1
            for name, value in instance.attributes.items():
                siblings[name, value] += 1

    def key(instance: EcsInstance) -> tuple[object, ...]:
        free = free_resources(instance, cluster.tasks_on(instance.identifier))
        parts: list[object] = []
        for each in strategy:
            spread_field = each.get("field", "").removeprefix("attribute:")
            if each["type"] == "binpack":
                parts.append(free.memory_mib if spread_field.lower() == "memory" else free.cpu)
            elif each["type"] == "spread":
                value = instance.attributes.get(spread_field, instance.identifier)
                name = spread_field if spread_field in instance.attributes else "instanceId"
                parts.append(siblings[name, value])
        return (*parts, instance.registered_at, instance.identifier)

    return key


def _holds(cluster: ClusterState, task: EcsTask, instance: EcsInstance, constraint: Shape) -> bool:
    if constraint["type"] == "distinctInstance":
        return all(
            other.group != task.group or other is task for other in cluster.tasks_on(instance.identifier)
        )
    return member_of(instance, constraint["expression"])


def member_of(instance: EcsInstance, expression: str) -> bool:
    """Evaluate ``attribute:NAME == VALUE``, ``!=``, ``=~`` and ``in [...]``, joined by ``and``.

    Raises UnknownExpressionError on any other part of the cluster query language
    (cluster-query-language.html).
    """
    for part in expression.split(" and "):
        found = re.fullmatch(r"\s*\(?attribute:(\S+)\s+(==|!=|=~|in)\s+(.+?)\)?\s*", part)
        if found is None:
            raise UnknownExpressionError(f"cannot evaluate the placement constraint {expression!r}")
        name, operator, value = found.groups()
        actual = instance.attributes.get(name)
        if actual is None:
            return False
        matches = {
            "==": actual == value,
            "!=": actual != value,
            "=~": re.fullmatch(value.replace("*", ".*"), actual) is not None,
            "in": actual in [each.strip() for each in value.strip("[]").split(",")],
        }
        if not matches[operator]:
            return False
    return True


def _number(value: object, unit: int, name: str) -> int:
    """Return CPU units or MiB of ``1024``, ``"1 vCPU"`` or ``"2GB"`` (API Task, cpu and memory)."""
    if value in (None, ""):
        return 0
    text = str(value).lower().strip()
    return int(float(text.removesuffix(name)) * unit) if text.endswith(name) else int(text)
