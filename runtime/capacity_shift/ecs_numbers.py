"""The numbers of a cluster on Amazon ECS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from botocore.exceptions import BotoCoreError, ClientError

from capacity_shift.cluster_numbers import LiveHosts, LiveQueue, LiveWorkers
from inference_contracts.ecs_names import POOL_ATTRIBUTE
from inference_contracts.shift_names import SharedPool, ShiftedQueue, ShiftedWorkers
from inference_decisions.capacity_shift.hand_over import HostsNow
from operations.operations_errors import EcsError, OperationsError

# Ranges of ECS services: the smallest and the largest capacity of their scalable targets of Application Auto
# Scaling.
#
# ``RegisterScalableTarget`` updates a target that exists. Parameters that a call leaves out stay as they are,
# so suspended scaling, policies and, outside of shared pools, the largest capacity keep their owner, which is
# CloudFormation. If the resource is active, the call "changes the resource's current capacity to a value that
# is inside of this range", so a lower largest capacity ends tasks at once:
# https://docs.aws.amazon.com/autoscaling/application/APIReference/API_RegisterScalableTarget.html
#
# CloudFormation "updates resources based on differences between what you submit and the stack's current
# template"
# (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html).
# So a deployment that changes the target writes the range of the blueprint again, and any other does not.
# A lower smallest capacity removes no task by itself, but a scaling policy may remove some until the next run
# sets the floor again.
#
# Workers that serve batch alone have no target. Their number is the desired count of their service. An update
# that changes nothing else begins no deployment
# (https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_UpdateService.html).

_NAMESPACE: Final = "ecs"
_DIMENSION: Final = "ecs:service:DesiredCount"
#: Targets of an answer: "The maximum number of scalable targets. This value can be between 1 and 50."
#: (https://docs.aws.amazon.com/autoscaling/application/APIReference/API_DescribeScalableTargets.html)
_TARGETS_PER_CALL: Final = 50
#: "You may specify up to 10 services to describe in a single operation."
#: (https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeServices.html)
_SERVICES_PER_CALL: Final = 10
#: Container instances and tasks of one call (DescribeContainerInstances, DescribeTasks: up to 100).
_OBJECTS_PER_CALL: Final = 100
_NOT_YET: Final = LiveWorkers(floor=0, replicas=0, current=0, ceiling=0, exists=False)


class EcsNumbers:
    """The numbers of a cluster on ECS.

    cluster: Its name.
    scaling, ecs: Clients of Application Auto Scaling and of ECS.
    """

    def __init__(self, cluster: str, scaling: Any, ecs: Any) -> None:
        self._cluster, self._scaling, self._ecs = cluster, scaling, ecs

    def workers(self, wanted: Sequence[ShiftedWorkers]) -> Mapping[str, LiveWorkers | OperationsError]:
        """Return the ranges of scalable targets, and what the services say of their tasks.

        On a shared pool, workers that do not exist yet have none: the others make room for them.
        """
        targets = self._targets([each.name for each in wanted if not each.batch_only])
        services = self._services([each.name for each in wanted])
        return {each.name: self._live(each, targets, services) for each in wanted}

    def _live(
        self,
        workers: ShiftedWorkers,
        targets: Mapping[str, dict[str, Any]],
        services: Mapping[str, dict[str, Any]],
    ) -> LiveWorkers | OperationsError:
        name, shares = workers.name, workers.handover_seconds is not None
        service, target = services.get(name), targets.get(name)
        if target is None and not shares:
            return EcsError(f"{self._resource(name)} is no scalable target of Application Auto Scaling")
        if service is None:
            if shares:
                return _NOT_YET
            return EcsError(f"the service {name} of the cluster {self._cluster} does not exist")
        wanted, running = int(service["desiredCount"]), int(service["runningCount"])
        if workers.batch_only:
            return LiveWorkers(floor=wanted, replicas=wanted, current=running, ceiling=wanted)
        if target is None:
            return LiveWorkers(floor=wanted, replicas=wanted, current=running, ceiling=wanted, exists=False)
        return LiveWorkers(
            floor=int(target["MinCapacity"]),
            replicas=wanted,
            current=running,
            ceiling=int(target["MaxCapacity"]),
        )

    def set_floor(self, workers: ShiftedWorkers, floor: int, ceiling: int | None = None) -> None:
        """Set the range of a scalable target, or the number of workers that serve batch alone."""
        limits = {} if ceiling is None else {"MaxCapacity": ceiling}
        try:
            if workers.batch_only:
                self._ecs.update_service(cluster=self._cluster, service=workers.name, desiredCount=floor)
                return
            self._scaling.register_scalable_target(
                ServiceNamespace=_NAMESPACE,
                ResourceId=self._resource(workers.name),
                ScalableDimension=_DIMENSION,
                MinCapacity=floor,
                **limits,
            )
        except (ClientError, BotoCoreError) as error:
            self._failed(workers.name, error)

    def hosts(self, pool: SharedPool, live: Mapping[str, LiveWorkers]) -> LiveHosts | None:
        """Return the hosts on which ECS places tasks, and how many tasks of each service have one.

        A host gives back what a task has when the task has stopped. A host whose agent is not connected, or
        that drains, takes no tasks.
        """
        try:
            hosts = self._container_instances(pool.pool)
            placed = {
                # Tasks above the wanted number are those that stop.
                name: each.replicas if each.current >= each.replicas else self._with_a_host(name)
                for name, each in live.items()
            }
        except (ClientError, BotoCoreError) as error:
            raise EcsError(f"the hosts of the pool {pool.pool}: {error}") from error
        free = [_gpus(each["remainingResources"]) for each in hosts]
        held = sum(_gpus(each["registeredResources"]) for each in hosts)
        return LiveHosts(HostsNow(free=free, used=held - sum(free), fixed=pool.fixed), placed)

    def _container_instances(self, pool: str) -> list[dict[str, Any]]:
        pages = self._ecs.get_paginator("list_container_instances").paginate(
            cluster=self._cluster, filter=f"attribute:{POOL_ATTRIBUTE} == {pool}", status="ACTIVE"
        )
        arns = [arn for page in pages for arn in page["containerInstanceArns"]]
        return [
            each
            for first in range(0, len(arns), _OBJECTS_PER_CALL)
            for each in self._ecs.describe_container_instances(
                cluster=self._cluster, containerInstances=arns[first : first + _OBJECTS_PER_CALL]
            )["containerInstances"]
            if each["agentConnected"]
        ]

    def _with_a_host(self, service: str) -> int:
        """Return how many tasks that are to run have a host. Others wait for one, in whatever state."""
        pages = self._ecs.get_paginator("list_tasks").paginate(
            cluster=self._cluster, serviceName=service, desiredStatus="RUNNING"
        )
        arns = [arn for page in pages for arn in page["taskArns"]]
        return sum(
            "containerInstanceArn" in each
            for first in range(0, len(arns), _OBJECTS_PER_CALL)
            for each in self._ecs.describe_tasks(
                cluster=self._cluster, tasks=arns[first : first + _OBJECTS_PER_CALL]
            )["tasks"]
        )

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Fail: ECS has no queue for jobs, and `validate` refuses a blueprint that wants one."""
        raise EcsError(f"ECS has no queue for jobs of the pool {queue.pool}")

    def _targets(self, names: Sequence[str]) -> Mapping[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for first in range(0, len(names), _TARGETS_PER_CALL):
            some = names[first : first + _TARGETS_PER_CALL]
            resources = {self._resource(name): name for name in some}
            try:
                answer = self._scaling.describe_scalable_targets(
                    ServiceNamespace=_NAMESPACE, ResourceIds=[*resources], ScalableDimension=_DIMENSION
                )
            except (ClientError, BotoCoreError) as error:
                self._failed(", ".join(some), error)
            found |= {resources[each["ResourceId"]]: each for each in answer["ScalableTargets"]}
        return found

    def _services(self, names: Sequence[str]) -> Mapping[str, dict[str, Any]]:
        """Return the services that exist. A deleted one is ``INACTIVE`` for some time, or in `failures`."""
        found: dict[str, dict[str, Any]] = {}
        for first in range(0, len(names), _SERVICES_PER_CALL):
            some = names[first : first + _SERVICES_PER_CALL]
            try:
                answer = self._ecs.describe_services(cluster=self._cluster, services=some)
            except (ClientError, BotoCoreError) as error:
                self._failed(", ".join(some), error)
            found |= {each["serviceName"]: each for each in answer["services"] if each["status"] == "ACTIVE"}
        return found

    def _resource(self, name: str) -> str:
        return f"service/{self._cluster}/{name}"

    def _failed(self, name: str, error: Exception) -> NoReturn:
        raise EcsError(f"the service {name} of the cluster {self._cluster}: {error}") from error


def _gpus(resources: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of GPUs among resources of a host. ECS lists their identifiers."""
    return sum(len(each.get("stringSetValue", ())) for each in resources if each["name"] == "GPU")
