"""The control plane: one object for all clusters, moved on by `tick`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from inference_local.emulator.ecs.control.cluster_state import (
    ClusterState,
    ContainerState,
    EcsService,
    EcsTask,
    HostPool,
    Shape,
    StopCode,
    TaskEnd,
    TaskStatus,
)
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.host_manager import HostManager
from inference_local.emulator.ecs.control.service_scheduler import FARGATE, ServiceScheduler
from inference_local.emulator.ecs.control.task_life import TaskLife
from inference_local.emulator.ecs.control.task_placement import (
    PlacementFailure,
    choose_provider,
    free_resources,
    needs_of,
    place,
)

#: Stopped tasks are described for an hour (API DescribeTasks).
_KEPT_SECONDS = 3600.0


class ClusterParts:
    """A cluster and what moves it."""

    def __init__(self, name: str, around: Dependencies) -> None:
        self.state = ClusterState(name)
        self.life = TaskLife(self.state, around)
        self.hosts = HostManager(self.state, around, self.life)
        self.scheduler = ServiceScheduler(self.state, around, self.life)


class EcsControl:
    """The clusters. Every method may be called from any thread; `lock` is held meanwhile.

    around: Agent, target groups, events.

    Notes
    -----
    All times are seconds of one clock, which the caller gives. Faults for tests: `kill_host`,
    `disconnect_agent`, `reconnect_agent` and `block_launches`; a task is killed through its process.
    """

    def __init__(self, around: Dependencies) -> None:
        self.around = around
        self.lock = threading.RLock()
        self._clusters: dict[str, ClusterParts] = {}
        self._late: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}

    def cluster(self, name: str) -> ClusterParts:
        """Return a cluster, which exists from its first use."""
        with self.lock:
            if name not in self._clusters:
                self._clusters[name] = ClusterParts(name, self.around)
            return self._clusters[name]

    def clusters(self) -> list[ClusterParts]:
        """Return every cluster."""
        return list(self._clusters.values())

    def tick(self, now: float) -> None:
        """Move everything on."""
        with self.lock:
            for parts in self._clusters.values():
                for service in list(parts.state.services.values()):
                    parts.scheduler.step(service, now)
                    if service.status == "DRAINING" and not parts.state.tasks_of(service.name):
                        service.status = "INACTIVE"
                        del parts.state.services[service.name]
                self._place(parts, now)
                parts.life.advance(now)
                parts.hosts.step(now)
                self._forget(parts.state, now)

    def create_service(self, cluster: str, name: str, request: dict[str, Any], now: float) -> EcsService:
        """Create a service from CreateService's request, with the ARN of its task definition."""
        with self.lock:
            parts = self.cluster(cluster)
            service = EcsService(name, request, now)
            service.tags = {each["key"]: each.get("value", "") for each in request.get("tags", ())}
            parts.state.services[name] = service
            parts.scheduler.new_deployment(service, request["taskDefinition"], now)
            return service

    def update_service(self, cluster: str, name: str, changes: Shape, now: float) -> EcsService:
        """Change a service. What changes the tasks begins a deployment (API UpdateService)."""
        with self.lock:
            parts = self.cluster(cluster)
            service = parts.state.services[name]
            before = dict(service.request)
            service.request.update(
                {key: value for key, value in changes.items() if key != "forceNewDeployment"}
            )
            of_tasks = (
                *("taskDefinition", "capacityProviderStrategy", "networkConfiguration", "loadBalancers"),
                *("placementStrategy", "placementConstraints", "propagateTags", "enableECSManagedTags"),
            )
            if changes.get("forceNewDeployment") or any(
                before.get(key) != service.request.get(key) for key in of_tasks
            ):
                parts.scheduler.new_deployment(service, service.request["taskDefinition"], now)
            service.was_steady = False
            return service

    def delete_service(self, cluster: str, name: str) -> EcsService:
        """Begin to delete a service, which is gone once its tasks have stopped (API DeleteService)."""
        with self.lock:
            service = self.cluster(cluster).state.services[name]
            service.status = "DRAINING"
            return service

    def run_task(self, cluster: str, definition: Shape, request: Shape, now: float) -> EcsTask:
        """Create a task that belongs to no service (API RunTask)."""
        with self.lock:
            strategy = request.get("capacityProviderStrategy") or ()
            provider = choose_provider(strategy, ()) if strategy else str(request.get("launchType", "EC2"))
            task = EcsTask(
                identifier=self.around.new_id(),
                definition=definition,
                needs=needs_of(definition),
                service="",
                deployment="",
                provider="" if provider == "EC2" else provider,
                created_at=now,
                overrides=request.get("overrides") or {},
                group=str(request.get("group") or f"family:{definition['family']}"),
                started_by=str(request.get("startedBy") or ""),
                tags={each["key"]: each.get("value", "") for each in request.get("tags", ())},
                runs_commands=bool(request.get("enableExecuteCommand")),
            )
            self.cluster(cluster).state.tasks[task.identifier] = task
            return task

    def stop_task(self, cluster: str, identifier: str, reason: str, now: float) -> EcsTask:
        """Stop a task. Protection does not prevent it (task-scale-in-protection.html)."""
        with self.lock:
            parts = self.cluster(cluster)
            task = parts.state.tasks[identifier]
            if task.status is not TaskStatus.STOPPED:
                parts.life.stop(task, now, StopCode.USER, reason or "Task stopped by user")
            return task

    def add_pool(self, cluster: str, pool: HostPool) -> None:
        """Associate a capacity provider with a cluster."""
        with self.lock:
            self.cluster(cluster).state.pools.setdefault(pool.name, pool)

    def remove_pool(self, name: str) -> None:
        """Delete a capacity provider, which nothing uses any more, with its hosts."""
        with self.lock:
            for parts in self._clusters.values():
                for identifier, instance in list(parts.state.instances.items()):
                    if instance.provider == name:
                        parts.hosts.remove(identifier)
                parts.state.pools.pop(name, None)

    def terminate_host(self, ec2_id: str, now: float) -> None:
        """End a host in its Auto Scaling group, by the identifier of its EC2 instance."""
        with self.lock:
            for parts in self._clusters.values():
                for instance in list(parts.state.instances.values()):
                    if instance.ec2_id == ec2_id:
                        parts.hosts.terminate(instance.identifier, now)

    def reboot_host(self, ec2_id: str, now: float) -> None:
        """Boot a host again, by the identifier of its EC2 instance. Other instances are no hosts."""
        with self.lock:
            for parts in self._clusters.values():
                for instance in list(parts.state.instances.values()):
                    if instance.ec2_id == ec2_id:
                        parts.hosts.reboot(instance.identifier, now)

    # What the agent tells. An agent that is disconnected tells it when it is back.

    def told_start(self, cluster: str, identifier: str) -> None:
        """Take note that the agent prepares a task."""
        self._tell(cluster, identifier, "observe_start")

    def told_containers(
        self, cluster: str, identifier: str, containers: Mapping[str, ContainerState], now: float
    ) -> None:
        """Take the states of a task's containers."""
        self._tell(cluster, identifier, "observe_containers", containers, now)

    def told_end(
        self,
        cluster: str,
        identifier: str,
        containers: Mapping[str, ContainerState],
        now: float,
        end: TaskEnd,
    ) -> None:
        """Take note that a task has ended."""
        self._tell(cluster, identifier, "observe_end", containers, now, end)

    # Faults.

    def kill_host(self, cluster: str, instance: str, now: float) -> None:
        """Lose a host with all its processes."""
        with self.lock:
            self.cluster(cluster).hosts.lose(instance, now)

    def disconnect_agent(self, cluster: str, instance: str) -> None:
        """Cut an agent from the control plane. Its tasks run on, and get no new ones."""
        with self.lock:
            parts = self.cluster(cluster)
            parts.hosts.set_agent(parts.state.instances[instance], connected=False)

    def reconnect_agent(self, cluster: str, instance: str) -> None:
        """Connect an agent again. It tells what has happened meanwhile."""
        with self.lock:
            parts = self.cluster(cluster)
            parts.hosts.set_agent(parts.state.instances[instance], connected=True)
            for method, given in self._late.pop(instance, ()):
                getattr(parts.life, method)(*given)

    def block_launches(self, cluster: str, pool: str, *, blocked: bool, refusal: str = "") -> None:
        """Let EC2 start no host for a pool, or start hosts again.

        refusal: What EC2 answers. Empty for too little capacity.
        """
        with self.lock:
            found = self.cluster(cluster).state.pools[pool]
            found.launches_blocked, found.refusal = blocked, refusal

    def hold_reboots(self, cluster: str, *, held: bool) -> None:
        """Keep hosts away that boot again, or let them come back."""
        with self.lock:
            self.cluster(cluster).hosts.holds_reboots = held

    def pools(self) -> list[HostPool]:
        """Return the pools of all clusters."""
        with self.lock:
            return [pool for parts in self._clusters.values() for pool in parts.state.pools.values()]

    def _tell(self, cluster: str, identifier: str, method: str, *given: Any) -> None:
        with self.lock:
            parts = self.cluster(cluster)
            task = parts.state.tasks.get(identifier)
            instance = parts.state.instances.get(task.instance or "") if task else None
            if instance is not None and not instance.agent_connected:
                self._late.setdefault(instance.identifier, []).append((method, (identifier, *given)))
                return
            getattr(parts.life, method)(identifier, *given)

    def _place(self, parts: ClusterParts, now: float) -> None:
        for task in list(parts.state.tasks.values()):
            if task.status is not TaskStatus.PROVISIONING or not task.is_live:
                continue
            service = parts.state.services.get(task.service)
            request = service.request if service else {}
            if task.provider in FARGATE:
                self._hand_over(task, now, self.around.new_address())
                continue
            rules = [
                *request.get("placementConstraints", ()),
                *task.definition.get("placementConstraints", ()),
            ]
            if request.get("schedulingStrategy") == "DAEMON":
                rules.append({"type": "distinctInstance"})
            found = place(parts.state, task, rules, request.get("placementStrategy") or ())
            if isinstance(found, PlacementFailure):
                self._say_unplaced(parts, service, task, found, now)
                continue
            free = free_resources(found, parts.state.tasks_on(found.identifier))
            task.gpu_ids = free.gpu_ids[: task.needs.gpus]
            task.instance = found.identifier
            is_host = task.definition.get("networkMode") != "awsvpc"
            self._hand_over(task, now, found.address if is_host else self.around.new_address())

    def _hand_over(self, task: EcsTask, now: float, address: str) -> None:
        task.address = address
        task.status = TaskStatus.PENDING
        task.pending_at = now
        parts = next(each for each in self._clusters.values() if task.identifier in each.state.tasks)
        self.around.names.refresh()
        self.around.runner.start(task, parts.state.instances.get(task.instance or ""))

    def _say_unplaced(
        self,
        parts: ClusterParts,
        service: EcsService | None,
        task: EcsTask,
        failure: PlacementFailure,
        now: float,
    ) -> None:
        """Say that a task has no place, unless its capacity provider is about to launch one.

        A task of a capacity provider waits in PROVISIONING; a task without one fails at once (RunTask) or is
        tried again (services).
        """
        reason = failure.reason
        if pool := parts.state.pools.get(task.provider):
            if not parts.hosts.fits_empty_host(pool, task):
                size = self.around.host_size(pool.instance_types[0])
                reason = (
                    "no container instance met all of its requirements. Reason: the task needs "
                    f"{task.needs.cpu} CPU units, {task.needs.memory_mib} MiB and {task.needs.gpus} GPUs; an "
                    f"empty {pool.instance_types[0]} of {pool.name} has {size.cpu}, {size.memory_mib} MiB "
                    f"and {size.gpus}."
                )
            elif parts.hosts.can_grow(pool):
                return
        if service is not None:
            self.around.service_event(service, now, f"was unable to place a task because {reason}")
            self.around.tell(
                "ECS Service Action",
                {
                    "cluster": parts.state.name,
                    "service": service.name,
                    "eventType": "ERROR",
                    "eventName": "SERVICE_TASK_PLACEMENT_FAILURE",
                    "reason": reason,
                },
            )

    def _forget(self, state: ClusterState, now: float) -> None:
        for task in list(state.tasks.values()):
            if task.status is TaskStatus.STOPPED and now - (task.stopped_at or now) > _KEPT_SECONDS:
                del state.tasks[task.identifier]
