"""The numbers of a cluster that the shift reads and sets, whatever runs the containers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts.shift_names import ShiftedQueue, ShiftedWorkers
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import EcsError, KubernetesError


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The numbers of workers of a role."""

    floor: int
    """Their smallest number now."""
    replicas: int
    """How many are wanted."""
    current: int
    """How many exist."""


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """A queue for jobs."""

    quota: int
    """Its present quota of its pool's own accelerators."""
    set_quota: Callable[[int], None]
    """Sets another one. It fails if somebody else changed the quotas since this one was read."""


class ClusterNumbers(Protocol):
    """Reads and sets the numbers. Each method raises an `OperationsError` if the cluster does not answer."""

    def workers(self, workers: ShiftedWorkers) -> LiveWorkers:
        """Return the numbers of workers.

        workers: Workers of the configuration.
        """

    def set_floor(self, workers: ShiftedWorkers, floor: int) -> None:
        """Set the smallest number of workers. Their largest number stays as it is.

        floor: The number.
        """

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Return a queue for jobs.

        queue: A queue of the configuration.
        """


# Floors of KEDA's ScaledObjects and quotas of Kueue's ClusterQueues.
#
# The chart of a model sets the floor when it creates the ScaledObject. From then on it keeps what is live,
# within the range of the blueprint, and Helm overwrites fields of its charts whoever has set them
# (`inference_constructs.eks.inference_cluster`). So no deployment fails because of a floor, and none lowers
# it.

_SCALED_OBJECTS: Final = "/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects/{name}"
#: The autoscaler that KEDA creates for a ScaledObject: https://keda.sh/docs/2.20/concepts/scaling-deployments/
#: (``horizontalPodAutoscalerConfig.name``). It has the same fields for each kind of target.
_AUTOSCALERS: Final = "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/keda-hpa-{name}"
_CLUSTER_QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{pool}"
_CONFLICT: Final = 409
#: Attempts to change a queue whose status Kueue writes at the same time.
_ATTEMPTS: Final = 5


class KubernetesNumbers:
    """The numbers of a cluster on EKS.

    kubernetes: The API server.
    """

    def __init__(self, kubernetes: KubernetesApi) -> None:
        self._kubernetes = kubernetes

    def workers(self, workers: ShiftedWorkers) -> LiveWorkers:
        """Return the floor of a ScaledObject, and what its autoscaler says of the replicas."""
        names = {"namespace": workers.namespace, "name": workers.name}
        scaled = self._found(_SCALED_OBJECTS.format(**names))
        status = self._found(_AUTOSCALERS.format(**names)).get("status", {})
        current = int(status.get("currentReplicas", 0))
        return LiveWorkers(
            floor=int(scaled["spec"].get("minReplicaCount", 0)),
            replicas=int(status.get("desiredReplicas", 0)) or current,
            current=current,
        )

    def set_floor(self, workers: ShiftedWorkers, floor: int) -> None:
        """Set the floor of a ScaledObject."""
        path = _SCALED_OBJECTS.format(namespace=workers.namespace, name=workers.name)
        self._kubernetes.patch(path, {"spec": {"minReplicaCount": floor}})

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Return a ClusterQueue."""
        found = self._found(_CLUSTER_QUEUES.format(pool=queue.pool))
        return LiveQueue(quota_of(queue, found), partial(self._set_quota, queue, found))

    def _set_quota(self, queue: ShiftedQueue, found: KubernetesObject, quota: int) -> None:
        """Write the list of groups with one other quota. It fails if somebody else changed them since.

        Kueue writes the status of a queue whenever a job comes or goes. That makes another version of the
        queue, too, and is no reason to fail.
        """
        path = _CLUSTER_QUEUES.format(pool=queue.pool)
        groups = copy.deepcopy(found["spec"]["resourceGroups"])
        for group in groups:
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    if flavor["name"] == queue.pool and resource["name"] == queue.resource:
                        resource["nominalQuota"] = str(quota)
        live = found
        for left in reversed(range(_ATTEMPTS)):
            change = {
                "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
                "spec": {"resourceGroups": groups},
            }
            try:
                self._kubernetes.patch(path, change)
            except KubernetesError as error:
                newer = self._kubernetes.get(path) if error.status == _CONFLICT and left else None
                if newer is None or newer["spec"] != found["spec"]:
                    raise
                live = newer
            else:
                return

    def _found(self, path: str) -> KubernetesObject:
        found = self._kubernetes.get(path)
        if found is None:
            raise KubernetesError(f"{path} does not exist", 404)
        return found


def quota_of(queue: ShiftedQueue, live: KubernetesObject) -> int:
    """Return the present nominal quota of a pool's own accelerators.

    queue: The pool.
    live: Its ClusterQueue.
    """
    for group in live["spec"].get("resourceGroups", []):
        for flavor in group["flavors"]:
            if flavor["name"] == queue.pool:
                for resource in flavor["resources"]:
                    if resource["name"] == queue.resource:
                        return int(resource["nominalQuota"])
    raise KubernetesError(f"the ClusterQueue {queue.pool} has no quota of {queue.resource}")


# Floors of ECS services: the smallest capacity of their scalable targets of Application Auto Scaling.
#
# ``RegisterScalableTarget`` updates a target that exists. Parameters that a call leaves out stay as they are,
# so the largest capacity, suspended scaling and policies keep their owner, which is CloudFormation.
# Application Auto Scaling then reads the present capacity, and raises it if it is below the smallest:
# https://docs.aws.amazon.com/autoscaling/application/APIReference/API_RegisterScalableTarget.html
#
# CloudFormation "updates resources based on differences between what you submit and the stack's current
# template"
# (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html).
# So a deployment that changes the target writes the smallest capacity of the blueprint again, and any other
# does not. A lower smallest capacity removes no task by itself, but a scaling policy may remove some until
# the next run sets the floor again.

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
