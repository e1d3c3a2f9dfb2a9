"""The tasks and services of a cluster, as the ECS API describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from inference_contracts.task_tags import LABEL_TAGS

#: Tasks and container instances of one call:
#: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeTasks.html
_TASKS: Final = 100
#: Services of one call: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeServices.html
_SERVICES: Final = 10
#: States of tasks that answer. One that drains is ``STOPPING``, and its requests still count:
#: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-lifecycle-explanation.html
_ANSWERING: Final = frozenset({"RUNNING", "DEACTIVATING", "STOPPING"})


@dataclass(frozen=True, slots=True)
class TaskHost:
    """An EC2 instance on which tasks run."""

    instance: str
    instance_type: str
    address: str
    """`instance`, `instance_type`, `address`: Identifier, type and private address."""
    purchase: str
    """``on-demand``, ``spot`` or ``reserved``: the values that Karpenter's label has on EKS."""


@dataclass(frozen=True, slots=True)
class LiveTask:
    """A task that runs, or drains."""

    identifier: str
    """Last part of its ARN."""
    tags: Mapping[str, str]
    address: str
    """Private address: that of its own network interface, or of its host. Empty if it is not known."""
    host: TaskHost | None
    """The EC2 instance that it runs on. None on Fargate, and while EC2 does not know it."""


class ClusterTasks:
    """Reads a cluster.

    cluster: Name or ARN of the cluster.
    ecs, ec2: Clients of boto3.
    """

    def __init__(self, cluster: str, ecs: Any, ec2: Any) -> None:
        self._cluster, self._ecs, self._ec2 = cluster, ecs, ec2
        # A container instance keeps its EC2 instance, and that its private address, for its life.
        self._hosts: dict[str, TaskHost] = {}

    def live(self) -> Iterator[LiveTask]:
        """Yield the tasks that run or drain.

        Raises botocore.exceptions.ClientError or botocore.exceptions.BotoCoreError if ECS or EC2 does not
        answer.
        """
        found = [
            task
            for arns in _parts(sorted(set(self._arns())), _TASKS)
            for task in self._ecs.describe_tasks(cluster=self._cluster, tasks=arns, include=["TAGS"])["tasks"]
            if task["lastStatus"] in _ANSWERING
        ]
        self._read_hosts(sorted({each["containerInstanceArn"] for each in found if _on_host(each)}))
        for task in found:
            host = self._hosts.get(task.get("containerInstanceArn", ""))
            yield LiveTask(
                identifier=str(task["taskArn"]).rsplit("/", 1)[-1],
                tags={each["key"]: each["value"] for each in task.get("tags", [])},
                address=_own_address(task) or (host.address if host else ""),
                host=host,
            )

    def wanted(self) -> Mapping[tuple[str, str], int]:
        """Return the tasks that services want, by release and role.

        Raises botocore.exceptions.ClientError or botocore.exceptions.BotoCoreError if ECS does not answer.
        """
        wanted: dict[tuple[str, str], int] = {}
        for arns in _parts(self._service_arns(), _SERVICES):
            answer = self._ecs.describe_services(cluster=self._cluster, services=arns, include=["TAGS"])
            for service in answer["services"]:
                tags = {each["key"]: each["value"] for each in service.get("tags", [])}
                place = tags.get(LABEL_TAGS["release"], ""), tags.get(LABEL_TAGS["role"], "")
                if all(place) and service["status"] == "ACTIVE":
                    wanted[place] = wanted.get(place, 0) + int(service["desiredCount"])
        return wanted

    def _arns(self) -> Iterator[str]:
        pages = self._ecs.get_paginator("list_tasks").paginate(
            cluster=self._cluster, desiredStatus="RUNNING", PaginationConfig={"PageSize": _TASKS}
        )
        # Draining tasks are wanted as STOPPED, and answer until they end.
        ending = self._ecs.get_paginator("list_tasks").paginate(
            cluster=self._cluster, desiredStatus="STOPPED", PaginationConfig={"PageSize": _TASKS}
        )
        for page in (*pages, *ending):
            yield from page["taskArns"]

    def _service_arns(self) -> Iterator[str]:
        for page in self._ecs.get_paginator("list_services").paginate(
            cluster=self._cluster, PaginationConfig={"PageSize": _TASKS}
        ):
            yield from page["serviceArns"]

    def _read_hosts(self, arns: Sequence[str]) -> None:
        """Read the hosts that are not known yet."""
        for some in _parts([each for each in arns if each not in self._hosts], _TASKS):
            answer = self._ecs.describe_container_instances(cluster=self._cluster, containerInstances=some)
            by_instance = {
                each["ec2InstanceId"]: each["containerInstanceArn"] for each in answer["containerInstances"]
            }
            if not by_instance:
                continue
            described = self._ec2.describe_instances(InstanceIds=sorted(by_instance))
            for reservation in described["Reservations"]:
                for instance in reservation["Instances"]:
                    self._hosts[by_instance[instance["InstanceId"]]] = TaskHost(
                        instance["InstanceId"],
                        str(instance.get("InstanceType", "")),
                        str(instance.get("PrivateIpAddress", "")),
                        _purchase(instance),
                    )


def _parts(values: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield the values in lists of at most `size`."""
    left = iter(values)
    while part := list(islice(left, size)):
        yield part


def _purchase(instance: Mapping[str, Any]) -> str:
    """Return how an instance was bought.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html: ``instanceLifecycle`` is absent
    for instances on demand, ``capacityReservationId`` names the reservation of the others.
    """
    if instance.get("InstanceLifecycle") == "spot":
        return "spot"
    return "reserved" if instance.get("CapacityReservationId") else "on-demand"


def _on_host(task: Mapping[str, Any]) -> bool:
    return bool(task.get("containerInstanceArn"))


def _own_address(task: Mapping[str, Any]) -> str:
    """Return the address of a task's own network interface, which it has in network mode ``awsvpc``.

    https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Attachment.html
    """
    for attachment in task.get("attachments", []):
        if attachment.get("type") == "ElasticNetworkInterface":
            for detail in attachment.get("details", []):
                if detail.get("name") == "privateIPv4Address":
                    return str(detail["value"])
    return ""
