"""Launches and ends the hosts of capacity providers.

Sources: cluster-auto-scaling.html, managed-instance-draining.html (hosts drain before they
are terminated), API InfrastructureOptimization (scaleInAfter); API DeregisterContainerInstance ("instances
with disconnected agents aren't automatically deregistered when terminated"). Hosts leave after 15 minutes
without tasks because the alarm of managed scaling needs 15 points of a minute (Application Auto Scaling,
target tracking).
"""

from __future__ import annotations

from typing import Final

from inference_local.emulator.ecs.control.cluster_state import (
    ClusterState,
    EcsInstance,
    EcsTask,
    HostPool,
    LaunchAttempt,
    StopCode,
    TaskEnd,
    TaskStatus,
)
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.host_scaling import hosts_for, wanted_hosts
from inference_local.emulator.ecs.control.task_life import TaskLife
from inference_local.emulator.refusals import NO_CAPACITY

_EMPTY_SECONDS: Final = 900.0
#: Managed Instances without scaleInAfter: AWS chooses the time; 300 s is ours.
_IDLE_SECONDS: Final = 300.0
_DISABLED: Final = "DISABLED"
#: Time between two attempts of a group to start a host, and the attempts that it lists. Both are ours.
_RETRY_SECONDS: Final = 60.0
_KEPT_ATTEMPTS: Final = 100


class HostManager:
    """Keeps the hosts of a cluster.

    around: Agent, events, sizes of hosts.
    life: Ends the tasks of lost hosts.
    """

    def __init__(self, cluster: ClusterState, around: Dependencies, life: TaskLife) -> None:
        self._cluster = cluster
        self._around = around
        self._life = life
        self._launching: list[tuple[float, str]] = []
        self._leaving: set[str] = set()
        self._booting: list[tuple[float, str, list[EcsTask]]] = []
        self.holds_reboots = False
        """Whether hosts that boot again do not come back for now."""

    def step(self, now: float) -> None:
        """Register hosts that have booted, launch those that are missing, end those that nothing needs."""
        for ready, name in list(self._launching):
            if now >= ready and name in self._cluster.pools:
                self._launching.remove((ready, name))
                self._register(self._cluster.pools[name], now)
        for boot in [each for each in self._booting if now >= each[0] and not self.holds_reboots]:
            self._booting.remove(boot)
            self._come_back(boot[1], boot[2], now)
        for pool in self._cluster.pools.values():
            self._size(pool, now)
        for identifier in list(self._leaving):
            if not self._cluster.tasks_on(identifier):
                self._leaving.discard(identifier)
                self.remove(identifier)

    def terminate(self, identifier: str, now: float) -> None:
        """End a host as its Auto Scaling group does: with managed draining, its tasks leave first.

        The group launches another one, because its desired capacity stays (Amazon EC2 Auto Scaling API,
        TerminateInstanceInAutoScalingGroup, ShouldDecrementDesiredCapacity).
        """
        instance = self._cluster.instances[identifier]
        pool = self._cluster.pools[instance.provider]
        if identifier not in self._leaving and not pool.launches_blocked:
            self._launching.append((now + self._around.boot_seconds, pool.name))
        provider = self._cluster.pools[instance.provider].request.get("autoScalingGroupProvider", {})
        if provider.get("managedDraining", "ENABLED") == _DISABLED:
            self.lose(identifier, now)
            return
        self.set_status(instance, "DRAINING")
        self._leaving.add(identifier)

    def lose(self, identifier: str, now: float) -> None:
        """End a host at once, with every process on it.

        An instance whose agent was connected is deregistered and its tasks stop. Otherwise, the control plane
        learns nothing.
        """
        instance = self._cluster.instances[identifier]
        tasks = self._cluster.tasks_on(identifier)
        self._around.runner.kill_host(tasks)
        if not instance.agent_connected:
            return
        for task in tasks:
            task.wanted = TaskStatus.RUNNING  # the host's end comes before what else was asked
            reason = f"Host EC2 (instance {instance.ec2_id}) terminated."
            end = TaskEnd(StopCode.TERMINATION, reason)
            self._life.observe_end(task.identifier, task.containers, now, end)
        self.remove(identifier)

    def reboot(self, identifier: str, now: float) -> None:
        """Boot a host again (EC2 API, RebootInstances). It keeps its registration.

        Its processes end, its agent is away for the time of a boot, and tells when it is back that the tasks
        have ended.
        """
        if any(identifier == booting for _, booting, _ in self._booting):
            return
        tasks = self._cluster.tasks_on(identifier)
        self._around.runner.kill_host(tasks)
        self.set_agent(self._cluster.instances[identifier], connected=False)
        self._booting.append((now + self._around.boot_seconds, identifier, tasks))

    def _come_back(self, identifier: str, tasks: list[EcsTask], now: float) -> None:
        instance = self._cluster.instances.get(identifier)
        if instance is None:
            return
        self.set_agent(instance, connected=True)
        end = TaskEnd(StopCode.ESSENTIAL_EXITED, "Essential container in task exited")
        for task in tasks:
            self._life.observe_end(task.identifier, task.containers, now, end)

    def set_status(self, instance: EcsInstance, status: str) -> None:
        """Set ACTIVE or DRAINING (API UpdateContainerInstancesState)."""
        instance.status = status
        self._tell(instance)

    def set_agent(self, instance: EcsInstance, *, connected: bool) -> None:
        """Connect or disconnect an agent. Its tasks run on; what it would tell arrives when it is back."""
        instance.agent_connected = connected
        self._tell(instance)

    def can_grow(self, pool: HostPool) -> bool:
        """Whether the pool may still get a host."""
        present = sum(each.provider == pool.name for each in self._cluster.instances.values())
        return not pool.launches_blocked and (pool.maximum is None or present < pool.maximum)

    def fits_empty_host(self, pool: HostPool, task: EcsTask) -> bool:
        """Whether an empty host of the pool takes the task."""
        return self._around.host_size(pool.instance_types[0]).takes(task.needs)

    def _size(self, pool: HostPool, now: float) -> None:
        # Hosts that drain take nothing: what waits needs others, and the group counts them until they are
        # gone.
        every = [each for each in self._cluster.instances.values() if each.provider == pool.name]
        present = [each for each in every if each.status == "ACTIVE"]
        maximum = None if pool.maximum is None else pool.maximum - (len(every) - len(present))
        coming = sum(name == pool.name for _, name in self._launching)
        used = [each for each in present if self._is_used(each)]
        waiting = [
            task.needs
            for task in self._cluster.tasks.values()
            if task.provider == pool.name and task.status is TaskStatus.PROVISIONING and task.is_live
        ]
        group = pool.request.get("autoScalingGroupProvider")
        settings = (group or {}).get("managedScaling") or {}
        if group is not None and settings.get("status", _DISABLED) == _DISABLED:
            wanted = pool.wanted
        else:
            hosts = hosts_for(waiting, self._around.host_size(pool.instance_types[0]))
            wanted = wanted_hosts(len(used), hosts, len(present) + coming, (pool.minimum, maximum), settings)
        if not pool.launches_blocked:
            for _ in range(wanted - len(present) - coming):
                self._launching.append((now + self._around.boot_seconds, pool.name))
        elif wanted > len(present) + coming:
            self._refuse(pool, now)
        self._end_empty(pool, [each for each in present if each not in used], len(present) - wanted, now)

    def _refuse(self, pool: HostPool, now: float) -> None:
        """Note an attempt of the group that EC2 refused. The group tries again and again."""
        if pool.launches and pool.launches[0].refusal and now - pool.launches[0].at < _RETRY_SECONDS:
            return
        words = pool.refusal or str(NO_CAPACITY.error(type=pool.instance_types[0], zone=pool.zones[0]))
        _note(pool, LaunchAttempt(now, refusal=words))

    def _end_empty(self, pool: HostPool, empty: list[EcsInstance], surplus: int, now: float) -> None:
        wait = _EMPTY_SECONDS
        if managed := pool.request.get("managedInstancesProvider"):
            wait = float((managed.get("infrastructureOptimization") or {}).get("scaleInAfter", _IDLE_SECONDS))
        pool.empty_since = {each.identifier: pool.empty_since.get(each.identifier, now) for each in empty}
        for each in empty[: max(0, surplus)]:
            idle = now - pool.empty_since[each.identifier]
            if wait >= 0 and idle >= wait and not self._cluster.tasks_on(each.identifier):
                self.remove(each.identifier)

    def _is_used(self, instance: EcsInstance) -> bool:
        services = self._cluster.services
        return any(
            task.service not in services
            or services[task.service].request.get("schedulingStrategy") != "DAEMON"
            for task in self._cluster.tasks_on(instance.identifier)
        )

    def _register(self, pool: HostPool, now: float) -> None:
        name = pool.instance_types[0]
        size = self._around.host_size(name)
        identifier = self._around.new_id()
        number = sum(each.provider == pool.name for each in self._cluster.instances.values())
        instance = EcsInstance(
            identifier=identifier,
            ec2_id=f"i-{identifier[:17]}",
            address=self._around.new_address(),
            provider=pool.name,
            instance_type=name,
            zone=pool.zones[number % len(pool.zones)],
            cpu=size.cpu,
            memory_mib=size.memory_mib,
            gpu_ids=tuple(f"GPU-{identifier[:8]}-{index}" for index in range(size.gpus)),
            registered_at=now,
            own_attributes=pool.attributes,
            efa_interfaces=pool.efa_interfaces,
        )
        self._cluster.instances[identifier] = instance
        _note(pool, LaunchAttempt(now, ec2_id=instance.ec2_id))
        self._tell(instance)

    def remove(self, identifier: str) -> None:
        """Let a host without tasks go."""
        instance = self._cluster.instances.pop(identifier)
        instance.status, instance.agent_connected = "INACTIVE", False
        self._tell(instance)

    def _tell(self, instance: EcsInstance) -> None:
        self._around.tell(
            "ECS Container Instance State Change",
            {
                "cluster": self._cluster.name,
                "containerInstance": instance.identifier,
                "ec2InstanceId": instance.ec2_id,
                "status": instance.status,
                "agentConnected": instance.agent_connected,
            },
        )


def _note(pool: HostPool, attempt: LaunchAttempt) -> None:
    pool.launches.insert(0, attempt)
    del pool.launches[_KEPT_ATTEMPTS:]
