"""The acts of a repair on a cluster on Amazon ECS: container instances, tasks and Auto Scaling groups.

ECS drains a host that is set to DRAINING. It places no new tasks there, stops tasks that are PENDING, and
stops running tasks of services as far as their deployment configuration allows. The workers of the serving
plan have a ``minimumHealthyPercent`` below 100, so some stop before their replacements run. Standalone tasks
are left alone, and no worker is one.
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/container-instance-draining.html

A worker that is stopped leaves the discovery store and ends its streams within ``stopTimeout``. So cordon and
drain are one call here, and the steps after it only wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from gpu_health.cell_repairs import (
    CellRepairs,
    WorkerFigures,
    acting,
    group_of,
    groups_of,
    has_spare_place,
    terminate_in_group,
)
from gpu_health.host_reading import MANY, ClusterReading, ContainerHost, HostTask, parts
from gpu_health.watched_node import WatchedNode, WatchedWorker
from gpu_health.worker_metrics import listed_gpus
from inference_contracts.health_names import DRAIN_ATTRIBUTE, FAULT_KINDS
from inference_contracts.metric_labels import WORKER_ROLES
from inference_decisions.repairs.live_node import LiveNode, Purchase, RepairActionError, Verification
from inference_decisions.repairs.repair_case import Evidence, RepairCase, opened_case
from inference_decisions.repairs.worker_windows import peer_name
from operations import aws_clients

#: The mark of a drain: when the case was opened and cordoned, and its strongest evidence. A value has at most
#: 128 letters, digits, spaces and ``-_.@/:``:
#: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Attribute.html
_MARK: Final = re.compile(r"(\d+) (\d+) ([a-z_]+) ([\w.-]+) (fatal|open)")
_NOT_ALLOWED: Final = re.compile(r"[^\w.-]")
_LONGEST_CODE: Final = 64
_IN_SERVICE: Final = "InService"


@dataclass(slots=True)
class HostRepairs(CellRepairs):
    """The acts on a cluster on ECS."""

    groups_together: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Auto Scaling groups of the hosts that were read together, by instance."""
    bought_together: dict[str, tuple[Purchase, bool]] = field(default_factory=dict)
    """How they were bought, and whether there is a place for another one, by instance."""
    unread_together: str = ""
    """Why these could not be read. Empty if they were."""

    # --- Reading. ---

    def nodes(self) -> Sequence[ContainerHost]:
        """Return all hosts of the cluster."""
        return self._cluster.hosts()

    def node(self, name: str) -> ContainerHost | None:
        """Return a host by the identifier of its EC2 instance. None if there is none."""
        return next((host for host in self._cluster.hosts(name) if host.name == name), None)

    def workers(self, nodes: Sequence[WatchedNode]) -> list[WatchedWorker]:
        """Return the workers whose health checks pass, in the order of their names."""
        by_uid = {node.uid: node for node in nodes}
        found = [
            WatchedWorker(
                name=task.identifier,
                node=node,
                peers=peer_name(
                    release=task.release,
                    revision=task.revision,
                    role=task.label("role"),
                    gpu=node.instance_type,
                ),
                # ECS says when a task started, and not since when it is healthy.
                ready_since=None,
            )
            for task in self._cluster.tasks()
            if task.healthy and task.label("role") in WORKER_ROLES
            if (node := by_uid.get(task.host_uid)) is not None
        ]
        return sorted(found, key=lambda each: each.name)

    def marked_case(self, node: WatchedNode) -> RepairCase:
        """Return the case that the attribute of a host says, with its strongest evidence only."""
        parts = _MARK.fullmatch(node.mark)
        kind = next((each for each in FAULT_KINDS if parts and each == parts[3]), None)
        if parts is None or kind is None:
            raise ValueError(f"the mark of {node.name} is no case: {node.mark!r}")
        opened, cordoned = float(parts[1]), float(parts[2])
        evidence = Evidence(kind=kind, code=parts[4], at=opened, source="mark", fatal=parts[5] == "fatal")
        cell = self.platform.cell
        case = opened_case(
            platform=cell.platform,
            cell=cell.name,
            pool=node.pool,
            node=node.name,
            node_uid=node.uid,
            evidence=evidence,
        )
        return replace(case.moved("cordoned", cordoned, "read_from_mark"), instance=node.instance)

    def read_live(self, node: str) -> LiveNode | None:
        """Read a host, the tasks on it, its group and its GPUs. None if it is gone."""
        with acting(f"read {node}"):
            began, found = self.together.get(node) or (self.clock(), self.node(node))
            if not isinstance(found, ContainerHost):
                return None
            if node not in self.together:
                group, bought = group_of(found.instance), _bought([found.instance])
            elif self.unread_together:
                raise RepairActionError(f"cannot read {node}: {self.unread_together}")
            else:
                group, bought = self.groups_together.get(found.instance), self.bought_together
            if found.instance not in bought:
                raise RepairActionError(f"cannot read {node}: EC2 does not know {found.instance}")
            purchase, spare = bought[found.instance]
            figures = self.figures.get(node, WorkerFigures())
            return LiveNode(
                name=found.name,
                uid=found.uid,
                pool=found.pool,
                rack=found.rack,
                read_at=began,
                booted_at=found.created_at,
                ready=found.ready,
                cordoned=found.cordoned,
                cordoned_by_us=found.cordoned and bool(found.mark),
                owner="none" if group is None else "auto_scaling_group",
                owner_name="" if group is None else str(group["AutoScalingGroupName"]),
                instance=found.instance,
                purchase=purchase,
                spare=spare,
                gpus_expected=found.gpus_expected(self.platform.accelerators),
                gpus_allocatable=found.gpus_allocatable,
                conditions=found.conditions,
                dcgm=self.dcgm(node),
                slower=figures.slower,
                failing=figures.failing,
                peers=figures.peers,
                serving_pods=0
                if node in self.together
                else sum(bool(task.release) for task in self._cluster.tasks(found)),
            )

    def read_rest_together(self, cases: Sequence[RepairCase]) -> None:
        """Read groups and purchases of the hosts of cases. Tasks count when their host is closed.

        An error is one of each of these hosts, so that other cases go on.
        """
        hosts = [self.together[case.node][1] for case in cases]
        instances = [host.instance for host in hosts if host is not None]
        try:
            self.groups_together, self.bought_together = groups_of(instances), _bought(instances)
        except (ClientError, BotoCoreError) as error:
            self.unread_together = str(error)

    def verify(self, case: RepairCase) -> Verification:
        """Return whether the workers of the pool serve again, and the group has as many hosts as it wants.

        ECS may place the workers on hosts that were there before, and its managed scaling may want fewer
        hosts. So the new host need not run a worker. If there is one, its exporter has to list all its GPUs.
        """
        with acting("look for a replacement"):
            hosts = [host for host in self.nodes() if host.pool == case.pool]
            if not (_is_complete(case.owner_name, hosts) and self._workers_serve(case)):
                return Verification(serving=False)
            taken = {each.replacement for each in self.store.cases(self.clock()) if each.replacement}
            since = case.times.get("cordoned", case.opened_at)
            young = [
                host
                for host in hosts
                if host.created_at > since and host.uid != case.node_uid and host.name not in taken
            ]
            if not self._list_their_gpus(young) or not (young or case.owner_name):
                return Verification(serving=False)
            return Verification(serving=True, replacement=young[0].name if young else "")

    # --- Acting. ---

    def cordon(self, case: RepairCase) -> None:
        """Mark the host, then drain it: a drain without a mark would be that of somebody else."""
        with acting(f"drain {case.node}"):
            found = self.node(case.node)
            if found is None or found.uid != case.node_uid:
                raise RepairActionError(f"{case.node} is another host now")
            if found.cordoned:
                if not found.mark:
                    raise RepairActionError(f"somebody else drains {case.node}")
                return  # a host that drains already cannot be set to DRAINING
            attribute = {**_attribute(found), "value": _mark(case, self.clock())}
            aws_clients.client("ecs").put_attributes(cluster=self._name, attributes=[attribute])
            self._set_state(found, "DRAINING")
            self.together.pop(case.node, None)

    def uncordon(self, case: RepairCase) -> None:
        """Let the host get tasks again, if the drain is ours. The mark goes last, so this can be repeated."""
        with acting(f"open {case.node}"):
            found = self.node(case.node)
            if found is None or found.uid != case.node_uid or not found.mark:
                return
            if found.cordoned:
                self._set_state(found, "ACTIVE")
            aws_clients.client("ecs").delete_attributes(cluster=self._name, attributes=[_attribute(found)])

    def drain(self, case: RepairCase) -> None:
        """Do nothing: ECS stops and replaces the tasks of a host that is DRAINING."""

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Terminate the instance in its group, which starts another one.

        Scale-in protection, which managed termination protection sets, does not hold this call back:
        https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
        Managed draining holds the instance until its last task, an exporter, has ended:
        https://docs.aws.amazon.com/AmazonECS/latest/developerguide/managed-instance-draining.html
        """
        if live.uid != case.node_uid:
            return
        with acting(f"replace {case.node}"):
            if live.owner == "auto_scaling_group":
                terminate_in_group(live.instance)
            elif not case.owner_name:
                raise RepairActionError(f"no Auto Scaling group owns {case.node}")

    @property
    def _name(self) -> str:
        return self.platform.cell.ecs_cluster

    @property
    def _cluster(self) -> ClusterReading:
        return ClusterReading(
            self.platform.cell.platform, self._name, list(self.platform.settings.repaired_by)
        )

    def _set_state(self, host: ContainerHost, state: str) -> None:
        """Set the state of a host. ECS reports a host that it refuses in its answer.

        https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_UpdateContainerInstancesState.html
        """
        answer = aws_clients.client("ecs").update_container_instances_state(
            cluster=self._name, containerInstances=[host.uid], status=state
        )
        if answer.get("failures"):
            reasons = ", ".join(str(each.get("reason", "no reason")) for each in answer["failures"])
            raise RepairActionError(f"ECS did not set {host.name} to {state}: {reasons}")

    def _workers_serve(self, case: RepairCase) -> bool:
        """Return whether every service of the pool has its tasks, and all are healthy on other hosts."""
        services = self._cluster.worker_services(case.pool)
        if not services or any(each["pendingCount"] for each in services):
            return False
        tasks = [task for task in self._cluster.tasks() if self._works(task, case.pool)]
        wanted = sum(each["desiredCount"] for each in services)
        return len(tasks) >= wanted and all(task.healthy and task.host_uid != case.node_uid for task in tasks)

    @staticmethod
    def _works(task: HostTask, pool: str) -> bool:
        ends = task.content["desiredStatus"] == "STOPPED"
        return task.label("pool") == pool and task.label("role") in WORKER_ROLES and not ends

    def _list_their_gpus(self, hosts: Sequence[ContainerHost]) -> bool:
        cell = self.platform.cell
        listed = listed_gpus(cell.metrics, cell.platform, [host.name for host in hosts], self.clock())
        accelerators = self.platform.accelerators
        return all(
            host.ready and listed.get(host.name, 0) >= host.gpus_expected(accelerators) for host in hosts
        )


def _is_complete(group: str, hosts: Sequence[ContainerHost]) -> bool:
    """Return whether a group has as many hosts in service as it wants, and all have joined.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingGroup.html
    """
    if not group:
        return True
    answer = aws_clients.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    joined = {host.name for host in hosts}
    for each in answer["AutoScalingGroups"]:
        serving = {
            str(one["InstanceId"]) for one in each["Instances"] if one["LifecycleState"] == _IN_SERVICE
        }
        if len(serving) < each["DesiredCapacity"] or not serving <= joined:
            return False
    return True


def _bought(instances: list[str]) -> dict[str, tuple[Purchase, bool]]:
    """Return how instances were bought, and whether there is a place for another one, by instance.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html: ``instanceLifecycle`` is absent
    for instances on demand. A launch template that targets a reservation is on the instance. One that the
    instance only matched by chance is not asked for: another instance starts without it too.

    A filter has at most 200 values and, other than a list of identifiers, leaves out what EC2 does not know:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
    """
    pages = aws_clients.client("ec2").get_paginator("describe_instances")
    found: list[dict[str, Any]] = [
        each
        for some in parts(instances, MANY)
        for page in pages.paginate(Filters=[{"Name": "instance-id", "Values": some}])
        for one in page["Reservations"]
        for each in one["Instances"]
    ]
    # Hosts that are read together are of few reservations.
    spare = cache(has_spare_place)
    return {str(each["InstanceId"]): _purchase(each, spare) for each in found}


def _purchase(instance: Mapping[str, Any], spare: Callable[[str], bool]) -> tuple[Purchase, bool]:
    lifecycle = instance.get("InstanceLifecycle", "")
    target = instance.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    reservation = target.get("CapacityReservationId") or instance.get("CapacityReservationId", "")
    if lifecycle == "spot":
        return "spot", True
    if lifecycle == "capacity-block":
        return "capacity_block", bool(reservation) and spare(reservation)
    if target:
        return "reservation", bool(reservation) and spare(reservation)
    return "on_demand", True


def _attribute(host: ContainerHost) -> dict[str, str]:
    return {"name": DRAIN_ATTRIBUTE, "targetType": "container-instance", "targetId": host.uid}


def _mark(case: RepairCase, now: float) -> str:
    strongest = next((each for each in case.evidence if each.fatal), case.evidence[-1])
    code = _NOT_ALLOWED.sub("_", strongest.code)[:_LONGEST_CODE] or "_"
    fatal = "fatal" if strongest.fatal else "open"
    return f"{case.opened_at:.0f} {now:.0f} {strongest.kind} {code} {fatal}"
