"""The numbers of a cluster that the shift reads and sets, whatever runs the containers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts.shift_names import ShiftedQueue, ShiftedWorkers
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import EcsError, KubernetesError, OperationsError


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The numbers of workers of a role."""

    floor: int
    """Their smallest number now."""
    replicas: int
    """How many are wanted."""
    current: int
    """How many exist."""
    ceiling: int | None = None
    """Their largest number now. None if the shift does not set it."""


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """A queue for jobs."""

    quota: int
    """Its present quota of its pool's own accelerators."""
    set_quota: Callable[[int], None]
    """Sets another one. It fails if somebody else changed the quotas since this one was read."""


class ClusterNumbers(Protocol):
    """Reads and sets the numbers. Each method raises an `OperationsError` if the cluster does not answer."""

    def workers(self, wanted: Sequence[ShiftedWorkers]) -> Mapping[str, LiveWorkers | OperationsError]:
        """Return the numbers of all workers by name, or why one of them has none, with few requests.

        wanted: Workers of the configuration.
        """

    def set_floor(self, workers: ShiftedWorkers, floor: int, ceiling: int | None = None) -> None:
        """Set the smallest number of workers, and with a ceiling also the largest, in one change.

        floor: The smallest number. Of workers that serve batch alone, it is the number.
        ceiling: The largest number. None if it stays as it is.
        """

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Return a queue for jobs.

        queue: A queue of the configuration.
        """


# Floors and ceilings of KEDA's ScaledObjects, numbers of workers of batch, quotas of Kueue's ClusterQueues.
#
# The chart of a model sets the floor when it creates the ScaledObject. From then on it keeps what is live,
# within the range of the blueprint, and Helm overwrites fields of its charts whoever has set them
# (`inference_constructs.eks.inference_cluster`). So no deployment fails because of a floor, and none lowers
# it. On a pool that models share by the hour, the same holds for the ceiling. A HorizontalPodAutoscaler ends
# workers above its maximum at once, whatever its metrics say (`reconcileAutoscaler` of
# ``pkg/controller/podautoscaler/horizontal.go`` of Kubernetes), so KEDA cannot take what others were given.
#
# Workers that serve batch alone have no ScaledObject, because an autoscaler keeps at least one worker. The
# shift sets their number by the subresource ``scale``, and a deployment keeps it.

_SCALED_OBJECTS: Final = "/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects"
#: The autoscaler that KEDA creates for a ScaledObject: https://keda.sh/docs/2.20/concepts/scaling-deployments/
#: (``horizontalPodAutoscalerConfig.name``). It has the same fields for each kind of target.
_AUTOSCALERS: Final = "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
_CLUSTER_QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{pool}"
_SCALE: Final = "/apis/{kind}/namespaces/{namespace}/{plural}/{name}/scale"
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
#: Attempts to change a queue whose status Kueue writes at the same time.
_ATTEMPTS: Final = 5


class KubernetesNumbers:
    """The numbers of a cluster on EKS.

    kubernetes: The API server.
    """

    def __init__(self, kubernetes: KubernetesApi) -> None:
        self._kubernetes = kubernetes

    def workers(self, wanted: Sequence[ShiftedWorkers]) -> Mapping[str, LiveWorkers | OperationsError]:
        """Return floors of ScaledObjects, and what their autoscalers say of the replicas: a list of each."""
        found: dict[str, LiveWorkers | OperationsError] = {}
        for namespace in sorted({each.namespace for each in wanted}):
            scaled = self._listed(_SCALED_OBJECTS.format(namespace=namespace))
            scalers = self._listed(_AUTOSCALERS.format(namespace=namespace))
            for each in wanted:
                if each.namespace == namespace:
                    found[each.name] = (
                        self._of_scale(each) if each.scale else _of_objects(each, scaled, scalers)
                    )
        return found

    def set_floor(self, workers: ShiftedWorkers, floor: int, ceiling: int | None = None) -> None:
        """Set the range of a ScaledObject. KEDA refuses a floor above the ceiling, so both are one change."""
        if workers.scale:
            self._kubernetes.patch(_scale_of(workers), {"spec": {"replicas": floor}})
            return
        path = f"{_SCALED_OBJECTS.format(namespace=workers.namespace)}/{workers.name}"
        limits = {} if ceiling is None else {"maxReplicaCount": ceiling}
        self._kubernetes.patch(path, {"spec": {"minReplicaCount": floor, **limits}})

    def _of_scale(self, workers: ShiftedWorkers) -> LiveWorkers | OperationsError:
        """Return the number of workers that have no autoscaler: floor, ceiling and number are one."""
        try:
            found = self._found(_scale_of(workers))
        except KubernetesError as error:
            return error
        number = int(found["spec"].get("replicas", 0))
        return LiveWorkers(
            floor=number, replicas=number, current=int(found["status"].get("replicas", 0)), ceiling=number
        )

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

    def _listed(self, path: str) -> Mapping[str, KubernetesObject]:
        return {each["metadata"]["name"]: each for each in self._kubernetes.list(path)}

    def _found(self, path: str) -> KubernetesObject:
        found = self._kubernetes.get(path)
        if found is None:
            raise KubernetesError(f"{path} does not exist", _NOT_FOUND)
        return found


def _scale_of(workers: ShiftedWorkers) -> str:
    kind, _, plural = workers.scale.rpartition("/")
    return _SCALE.format(kind=kind, namespace=workers.namespace, plural=plural, name=workers.name)


def _of_objects(
    workers: ShiftedWorkers,
    scaled: Mapping[str, KubernetesObject],
    scalers: Mapping[str, KubernetesObject],
) -> LiveWorkers | OperationsError:
    scaler = f"keda-hpa-{workers.name}"
    if workers.name not in scaled:
        return KubernetesError(f"the ScaledObject {workers.name} does not exist", _NOT_FOUND)
    if scaler not in scalers:
        return KubernetesError(f"the autoscaler {scaler} does not exist", _NOT_FOUND)
    status = scalers[scaler].get("status", {})
    current = int(status.get("currentReplicas", 0))
    return LiveWorkers(
        floor=int(scaled[workers.name]["spec"].get("minReplicaCount", 0)),
        ceiling=scaled[workers.name]["spec"].get("maxReplicaCount"),
        replicas=int(status.get("desiredReplicas", 0)) or current,
        current=current,
    )


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
#: Targets of an answer: "The maximum number of scalable targets. This value can be between 1 and 50."
#: (https://docs.aws.amazon.com/autoscaling/application/APIReference/API_DescribeScalableTargets.html)
_TARGETS_PER_CALL: Final = 50
#: "You may specify up to 10 services to describe in a single operation."
#: (https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeServices.html)
_SERVICES_PER_CALL: Final = 10


class EcsNumbers:
    """The numbers of a cluster on ECS.

    cluster: Its name.
    scaling, ecs: Clients of Application Auto Scaling and of ECS.
    """

    def __init__(self, cluster: str, scaling: Any, ecs: Any) -> None:
        self._cluster, self._scaling, self._ecs = cluster, scaling, ecs

    def workers(self, wanted: Sequence[ShiftedWorkers]) -> Mapping[str, LiveWorkers | OperationsError]:
        """Return the floors of scalable targets, and what the services say of their tasks."""
        names = [each.name for each in wanted]
        targets, services = self._targets(names), self._services(names)
        found: dict[str, LiveWorkers | OperationsError] = {}
        for name in names:
            if name not in targets:
                found[name] = EcsError(
                    f"{self._resource(name)} is no scalable target of Application Auto Scaling"
                )
            elif name not in services:
                found[name] = EcsError(f"the service {name} of the cluster {self._cluster} does not exist")
            else:
                found[name] = LiveWorkers(
                    floor=int(targets[name]["MinCapacity"]),
                    replicas=int(services[name]["desiredCount"]),
                    current=int(services[name]["runningCount"]),
                )
        return found

    def set_floor(self, workers: ShiftedWorkers, floor: int, ceiling: int | None = None) -> None:
        """Set the smallest capacity of a scalable target. `validate` refuses pools where one is capped."""
        if ceiling is not None:
            raise EcsError(f"the largest number of {workers.name} belongs to the deployment")
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
