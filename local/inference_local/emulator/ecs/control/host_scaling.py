"""How many instances a capacity provider has.

Sources: AWS, "Automatically manage Amazon ECS capacity with cluster auto scaling" (cluster-auto-scaling.html:
CapacityProviderReservation = M / N x 100; 100 for an empty group without and 200 with waiting tasks;
instances that run only DAEMON tasks count as empty); API ManagedScaling (steps, target);
managed-instance-draining.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference_local.emulator.ecs.control.cluster_state import Needs, Shape


@dataclass(frozen=True)
class HostSize:
    """What one instance of the pool's first type registers; memory in MiB."""

    cpu: int
    memory_mib: int
    gpus: int

    def takes(self, needs: Needs) -> bool:
        """Whether an empty instance takes the task."""
        return needs.cpu <= self.cpu and needs.memory_mib <= self.memory_mib and needs.gpus <= self.gpus


def hosts_for(waiting: Sequence[Needs], size: HostSize) -> int:
    """Return how many empty instances the waiting tasks fill (binpack by memory; ports conflict)."""
    hosts: list[list[Needs]] = []
    for needs in sorted(waiting, key=lambda each: -each.memory_mib):
        for host in hosts:
            if _fits(host, needs, size):
                host.append(needs)
                break
        else:
            if size.takes(needs):
                hosts.append([needs])
    return len(hosts)


def wanted_hosts(
    used: int, waiting: int, present: int, bounds: tuple[int, int | None], settings: Shape
) -> int:
    """Return the size that managed scaling asks the group for.

    It keeps CapacityProviderReservation, 100 x (used + waiting) / present, at the target.

    used: Instances with tasks other than DAEMON tasks.
    waiting: Instances more that tasks in PROVISIONING need.
    present: Instances that the group has.
    bounds: Least and most instances of the group; None without a limit.
    settings: ``managedScaling`` of the capacity provider.
    """
    minimum, maximum = bounds
    target = int(settings.get("targetCapacity") or 100)
    wanted = -(-(used + waiting) * 100 // target)
    if wanted > present:
        least = int(settings.get("minimumScalingStepSize") or 1)
        most = int(settings.get("maximumScalingStepSize") or 10_000)
        wanted = present + min(max(wanted - present, least), most)
    wanted = max(wanted, minimum)
    return wanted if maximum is None else min(wanted, maximum)


def _fits(host: Sequence[Needs], needs: Needs, size: HostSize) -> bool:
    every = [*host, needs]
    return (
        sum(each.cpu for each in every) <= size.cpu
        and sum(each.memory_mib for each in every) <= size.memory_mib
        and sum(each.gpus for each in every) <= size.gpus
        and not any(each.ports & needs.ports for each in host)
    )
