"""What Amazon ECS says about the hosts of a cluster, its container instances, and about the tasks on them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts.ecs_names import POOL_ATTRIBUTE, capacity_provider
from inference_contracts.health_names import DRAIN_ATTRIBUTE
from inference_contracts.metric_labels import WORKER_ROLES
from inference_contracts.operations_names import HEALTH_SERVICE
from inference_contracts.task_tags import LABEL_TAGS
from inference_decisions.repairs.fault_rules import HardwareSignal
from inference_decisions.repairs.live_node import LiveCondition
from operations import aws_clients
from operations.operations_errors import EcsError

EcsObject = Mapping[str, Any]
_logger = Logger(service=HEALTH_SERVICE, child=True)

#: Container instances and tasks of one call, and services of one call:
#: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeContainerInstances.html
#: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeTasks.html
#: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeServices.html
MANY, _FEW = 100, 10
#: Attributes that the agent sets: Amazon ECS Developer Guide, "Attributes".
_INSTANCE_TYPE: Final = "ecs.instance-type"
#: States of a container instance that gets no new tasks:
#: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/container-instance-draining.html
_CLOSED: Final = frozenset({"DRAINING", "DEREGISTERING"})
#: The check of GPUs exists on Managed Instances only. On other hosts the agent checks Docker:
#: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_container_instance_health_events.html
_GPU_CHECK, _IMPAIRED = "ACCELERATED_COMPUTE", "IMPAIRED"
_STOPPED: Final = "STOPPED"
#: GPUs of a Managed Instance that lists none: ECS checks them itself, so none of them counts as missing.
_NOT_LISTED: Final = 2**31


@dataclass(frozen=True, slots=True)
class ContainerHost:
    """A container instance: a `WatchedNode`, whose name is that of its EC2 instance, as in metrics."""

    content: EcsObject
    """What DescribeContainerInstances says."""
    pool: str
    """Name of its pool. Empty if it is of none."""
    read_at: float
    """When it was read, in seconds since the epoch."""
    rack: str = ""
    """The network node that it hangs on, the lowest of its layers, as on EKS. Empty if it is not known."""

    @property
    def name(self) -> str:
        """Identifier of its EC2 instance: the label ``node`` of metrics (`task_targets`)."""
        return str(self.content["ec2InstanceId"])

    @property
    def arn(self) -> str:
        """Its ARN."""
        return str(self.content["containerInstanceArn"])

    @property
    def uid(self) -> str:
        """Its identifier in ECS. An instance that registers anew has another one."""
        return _last_part(self.arn)

    @property
    def instance(self) -> str:
        """Identifier of its EC2 instance."""
        return self.name

    @property
    def instance_type(self) -> str:
        """Its instance type."""
        return self._attribute(_INSTANCE_TYPE)

    @property
    def ready(self) -> bool | None:
        """Whether its agent is connected. None if it lost its connection."""
        return True if self.content["agentConnected"] else None

    @property
    def cordoned(self) -> bool:
        """Whether it gets no new tasks."""
        return self.content["status"] in _CLOSED

    @property
    def mark(self) -> str:
        """The mark of our drain. Empty if it is not ours."""
        return self._attribute(DRAIN_ATTRIBUTE)

    @property
    def created_at(self) -> float:
        """When it registered, in seconds since the epoch."""
        return float(self.content["registeredAt"].timestamp())

    @property
    def boot(self) -> str:
        """Not known: a host that boots again keeps its registration."""
        return ""

    @property
    def ready_since(self) -> float:
        """When it registered: ECS does not say when the agent connected again."""
        return self.created_at

    @property
    def gpus_allocatable(self) -> int:
        """GPUs that its agent registered. A host of a group without a driver registers none."""
        registered = self.content.get("registeredResources", [])
        listed = [each.get("stringSetValue", []) for each in registered if each["name"] == "GPU"]
        if not listed and not self._attribute(POOL_ATTRIBUTE):
            return _NOT_LISTED
        return sum(map(len, listed))

    def gpus_expected(self, accelerators: Mapping[str, int]) -> int:
        """Return the GPUs of its instance type. 0 if it has none, or is not known."""
        return accelerators.get(self.instance_type, 0)

    @property
    def conditions(self) -> tuple[LiveCondition, ...]:
        """A condition while its agent is disconnected, which is usual for a moment. ECS tells no time.

        https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_container_instance_events.html
        """
        return () if self.ready else (LiveCondition("Ready", None, "AgentDisconnected", self.read_at),)

    def signals(self) -> Iterator[HardwareSignal]:
        """Return what ECS' own check of GPUs says, and whether the agent is disconnected."""
        for condition in self.conditions:
            yield HardwareSignal(
                kind="node_condition", code=condition.code, node=self.name, at=condition.since, source="agent"
            )
        for check in self.content.get("healthStatus", {}).get("details", []):
            if check.get("type") == _GPU_CHECK and check.get("status") == _IMPAIRED:
                yield HardwareSignal(
                    kind="dcgm",
                    code="accelerated_compute",
                    node=self.name,
                    at=float(check["lastStatusChange"].timestamp()),
                    source="instance-health",
                )

    def _attribute(self, name: str) -> str:
        found = (each.get("value", "") for each in self.content.get("attributes", []) if each["name"] == name)
        return str(next(found, ""))


@dataclass(frozen=True, slots=True)
class HostTask:
    """A task that has not stopped."""

    content: EcsObject
    """What DescribeTasks says, with its tags."""

    @property
    def identifier(self) -> str:
        """Last part of its ARN: the label ``pod`` of its metrics (`task_targets`)."""
        return _last_part(self.content["taskArn"])

    @property
    def host_uid(self) -> str:
        """Identifier in ECS of the host that it runs on. Empty on Fargate."""
        return _last_part(self.content.get("containerInstanceArn", ""))

    @property
    def revision(self) -> str:
        """Family and revision of its task definition."""
        return _last_part(self.content["taskDefinitionArn"])

    @property
    def healthy(self) -> bool:
        """Whether it runs, and its health checks pass."""
        return self.content["lastStatus"] == "RUNNING" and self.content.get("healthStatus") == "HEALTHY"

    @property
    def release(self) -> str:
        """Its release. Empty if it serves no model."""
        return self.label("release")

    def label(self, name: str) -> str:
        """Return a label of its metrics, which is a tag of the task. Empty if it has none."""
        return _tag(self.content, name)


class ClusterReading:
    """Reads a cluster."""

    def __init__(self, platform: str, cluster: str, pools: Sequence[str]) -> None:
        self._cluster = cluster
        self._pools = {
            capacity_provider(platform, pool, managed=managed, spot=spot): pool
            for pool in pools
            for managed in (False, True)
            for spot in (False, True)
        }

    def hosts(self, instance: str = "") -> list[ContainerHost]:
        """Return the container instances that are not gone: a list leaves out inactive ones.

        https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_ListContainerInstances.html
        https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-query-language.html

        instance: Identifier of the EC2 instance that is looked for. Empty for all hosts.
        Raises EcsError if ECS does not answer.
        """
        looked_for = {"filter": f"ec2InstanceId == {instance}"} if instance else {}
        with _asking("list hosts"):
            ecs = aws_clients.client("ecs")
            arns = [
                arn
                for page in ecs.get_paginator("list_container_instances").paginate(
                    cluster=self._cluster, **looked_for
                )
                for arn in page["containerInstanceArns"]
            ]
            described = [
                content
                for some in parts(arns, MANY)
                for content in ecs.describe_container_instances(
                    cluster=self._cluster, containerInstances=some, include=["CONTAINER_INSTANCE_HEALTH"]
                )["containerInstances"]
            ]
        known, now = [each for each in described if each.get("ec2InstanceId")], time.time()
        racks = _racks([str(each["ec2InstanceId"]) for each in known])
        return [
            ContainerHost(each, self._pool(each), now, racks.get(str(each["ec2InstanceId"]), ""))
            for each in known
        ]

    def tasks(self, host: ContainerHost | None = None) -> list[HostTask]:
        """Return the tasks that have not stopped.

        A task that drains is wanted as STOPPED, and is STOPPING until its streams end:
        https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-lifecycle-explanation.html

        host: The host of the tasks. None for all tasks of the cluster.
        Raises EcsError if ECS does not answer.
        """
        on_host = {} if host is None else {"containerInstance": host.uid}
        with _asking("list tasks"):
            ecs = aws_clients.client("ecs")
            arns = [
                arn
                for wanted in ("RUNNING", "STOPPED")
                for page in ecs.get_paginator("list_tasks").paginate(
                    cluster=self._cluster, desiredStatus=wanted, **on_host
                )
                for arn in page["taskArns"]
            ]
            return [
                HostTask(content)
                for some in parts(list(dict.fromkeys(arns)), MANY)
                for content in ecs.describe_tasks(cluster=self._cluster, tasks=some, include=["TAGS"])[
                    "tasks"
                ]
                if content["lastStatus"] != _STOPPED
            ]

    def worker_services(self, pool: str) -> list[EcsObject]:
        """Return the active services whose workers run on a pool. Raises EcsError if ECS does not answer."""
        with _asking("list services"):
            ecs = aws_clients.client("ecs")
            arns = [
                arn
                for page in ecs.get_paginator("list_services").paginate(cluster=self._cluster)
                for arn in page["serviceArns"]
            ]
            return [
                service
                for some in parts(arns, _FEW)
                for service in ecs.describe_services(cluster=self._cluster, services=some, include=["TAGS"])[
                    "services"
                ]
                if service["status"] == "ACTIVE"
                and _tag(service, "pool") == pool
                and _tag(service, "role") in WORKER_ROLES
            ]

    def _pool(self, content: EcsObject) -> str:
        """Return the pool of a host: Auto Scaling groups set an attribute, Managed Instances have none."""
        for attribute in content.get("attributes", []):
            if attribute["name"] == POOL_ATTRIBUTE:
                return str(attribute.get("value", ""))
        return self._pools.get(str(content.get("capacityProviderName", "")), "")


def _racks(instances: list[str]) -> dict[str, str]:
    """Return the lowest network node of each instance. Types without a known topology have none.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTopology.html: at most 100
    identifiers, and no network nodes for a type that is not supported or an instance that does not run.
    Without an answer no rack is known: a shift of a rack is then seen as one of its pool or release.
    """
    racks = dict[str, str]()
    try:
        for some in parts(instances, MANY):
            answer = aws_clients.client("ec2").describe_instance_topology(InstanceIds=some)
            for each in answer["Instances"]:
                if nodes := each.get("NetworkNodes"):
                    racks[str(each["InstanceId"])] = str(nodes[-1])
    except (ClientError, BotoCoreError) as error:
        _logger.warning("racks are not known", extra={"error": str(error)})
    return racks


def parts(arns: list[str], size: int) -> Iterator[list[str]]:
    """Yield as many ARNs as one call takes."""
    for start in range(0, len(arns), size):
        yield arns[start : start + size]


def _last_part(arn: str) -> str:
    return arn.rsplit("/", 1)[-1]


def _tag(content: EcsObject, label: str) -> str:
    found = (each["value"] for each in content.get("tags", []) if each["key"] == LABEL_TAGS[label])
    return str(next(found, ""))


@contextmanager
def _asking(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise EcsError(f"ECS did not {what}: {error}") from error
