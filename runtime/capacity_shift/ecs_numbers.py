"""Floors of ECS services: the smallest capacity of their scalable targets of Application Auto Scaling.

``RegisterScalableTarget`` updates a target that exists. Parameters that a call leaves out stay as they are,
so the largest capacity, suspended scaling and policies keep their owner, which is CloudFormation. Application
Auto Scaling then reads the present capacity, and raises it if it is below the smallest:
https://docs.aws.amazon.com/autoscaling/application/APIReference/API_RegisterScalableTarget.html

CloudFormation "updates resources based on differences between what you submit and the stack's current
template"
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html).
So a deployment that changes the target writes the smallest capacity of the blueprint again, and any other
does not. A lower smallest capacity removes no task by itself, but a scaling policy may remove some until the
next run sets the floor again.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from botocore.exceptions import BotoCoreError, ClientError

from capacity_shift.cluster_numbers import LiveQueue, LiveWorkers
from inference_contracts.shift_configuration import ShiftedQueue, ShiftedWorkers
from operations.operations_errors import EcsError

_NAMESPACE: Final = "ecs"
_DIMENSION: Final = "ecs:service:DesiredCount"


class EcsNumbers:
    """The numbers of a cluster on ECS.

    cluster: Its name.
    scaling, ecs: Clients of Application Auto Scaling and of ECS.
    """

    def __init__(self, cluster: str, scaling: Any, ecs: Any) -> None:
        self._cluster, self._scaling, self._ecs = cluster, scaling, ecs

    def workers(self, workers: ShiftedWorkers) -> LiveWorkers:
        """Return the floor of a scalable target, and what the service says of its tasks."""
        service = self._service(workers.name)
        return LiveWorkers(
            floor=int(self._target(workers.name)["MinCapacity"]),
            replicas=int(service["desiredCount"]),
            current=int(service["runningCount"]),
        )

    def set_floor(self, workers: ShiftedWorkers, floor: int) -> None:
        """Set the smallest capacity of a scalable target."""
        try:
            self._scaling.register_scalable_target(
                ServiceNamespace=_NAMESPACE,
                ResourceId=self._resource(workers.name),
                ScalableDimension=_DIMENSION,
                MinCapacity=floor,
            )
        except (ClientError, BotoCoreError) as error:
            self._failed(workers.name, error)

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Fail: ECS has no queue for jobs, and `validate` refuses a blueprint that wants one."""
        raise EcsError(f"ECS has no queue for jobs of the pool {queue.pool}")

    def _target(self, name: str) -> dict[str, Any]:
        resource = self._resource(name)
        try:
            found: list[dict[str, Any]] = self._scaling.describe_scalable_targets(
                ServiceNamespace=_NAMESPACE, ResourceIds=[resource], ScalableDimension=_DIMENSION
            )["ScalableTargets"]
        except (ClientError, BotoCoreError) as error:
            self._failed(name, error)
        if not found:
            raise EcsError(f"{resource} is no scalable target of Application Auto Scaling")
        return found[0]

    def _service(self, name: str) -> dict[str, Any]:
        """Return a service. One that was deleted is ``INACTIVE`` for some time, or in `failures`.

        https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeServices.html
        """
        try:
            found: list[dict[str, Any]] = self._ecs.describe_services(cluster=self._cluster, services=[name])[
                "services"
            ]
        except (ClientError, BotoCoreError) as error:
            self._failed(name, error)
        if not found or found[0]["status"] != "ACTIVE":
            raise EcsError(f"the service {name} of the cluster {self._cluster} does not exist")
        return found[0]

    def _resource(self, name: str) -> str:
        return f"service/{self._cluster}/{name}"

    def _failed(self, name: str, error: Exception) -> NoReturn:
        raise EcsError(f"the service {name} of the cluster {self._cluster}: {error}") from error
