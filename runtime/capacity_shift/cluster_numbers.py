"""The numbers of a cluster that the shift reads and sets, whatever runs the containers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from inference_contracts.shift_names import SharedPool, ShiftedQueue, ShiftedWorkers
from inference_decisions.capacity_shift.hand_over import HostsNow
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import KubernetesError, OperationsError


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
    exists: bool = True
    """Whether their number can be set. A deployment that creates them may not be that far."""


@dataclass(frozen=True, slots=True)
class LiveHosts:
    """The hosts of a shared pool on which nothing pre-empts, and who is on them."""

    hosts: HostsNow
    placed: Mapping[str, int]
    """Workers that are wanted and have a host, by name."""


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

    def hosts(self, pool: SharedPool, live: Mapping[str, LiveWorkers]) -> LiveHosts | None:
        """Return the hosts of a shared pool. None if the cluster pre-empts, so that nobody has to wait.

        live: Present numbers of the pool's workers.
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

    def hosts(self, pool: SharedPool, live: Mapping[str, LiveWorkers]) -> LiveHosts | None:  # noqa: ARG002
        """Return None: the scheduler ends workers of batch if those of real time find no place."""
        return None

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
