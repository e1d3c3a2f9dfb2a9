"""Floors of KEDA's ScaledObjects and quotas of Kueue's ClusterQueues.

The chart of a model sets the floor when it creates the ScaledObject. From then on it keeps what is live,
within the range of the blueprint, and Helm overwrites fields of its charts whoever has set them
(`inference_constructs.eks.forcing_helm`). So no deployment fails because of a floor, and none lowers it.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Final

from capacity_shift.cluster_numbers import LiveQueue, LiveWorkers
from inference_contracts.shift_configuration import ShiftedQueue, ShiftedWorkers
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import KubernetesError

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
