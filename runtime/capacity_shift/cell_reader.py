"""What runs now: floors and replicas from the API server, ready workers from the recorded series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aws_lambda_powertools import Logger

from inference_blueprints.capacity_shift.shift_view import CellView, DeploymentView, PoolView
from inference_blueprints.contracts.shift_configuration import (
    ShiftConfiguration,
    ShiftedQueue,
    ShiftedWorkers,
)
from inference_blueprints.promql.cloudwatch_promql import CloudWatchPromql
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import KubernetesError, MetricsError
from operations.promql import text_literal

_logger = Logger(child=True)

SCALED_OBJECTS: Final = "/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects/{name}"
#: The autoscaler that KEDA creates for a ScaledObject: https://keda.sh/docs/2.20/concepts/scaling-deployments/
#: (``horizontalPodAutoscalerConfig.name``). It has the same fields for each kind of target.
_AUTOSCALERS: Final = "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/keda-hpa-{name}"
CLUSTER_QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{pool}"


@dataclass(frozen=True, slots=True)
class LiveCell:
    """What a run read.

    Parameters
    ----------
    view
        Input of the decision.
    floors
        Present floor by the name of a ScaledObject.
    queues
        ClusterQueues by pool.
    unread
        What could not be read, in words, by name.
    """

    view: CellView
    floors: Mapping[str, int]
    queues: Mapping[str, KubernetesObject]
    unread: Mapping[str, str]


class CellReader:
    """Reads what runs in a cell.

    Parameters
    ----------
    platform
        Name of the platform.
    configuration
        What the shift moves.
    kubernetes, metrics
        The services.
    """

    def __init__(
        self,
        platform: str,
        configuration: ShiftConfiguration,
        kubernetes: KubernetesApi,
        metrics: CloudWatchPromql,
    ) -> None:
        self._platform, self._configuration = platform, configuration
        self._kubernetes, self._metrics = kubernetes, metrics

    def read(self, now: float) -> LiveCell:
        """Read the cell. What cannot be read is named, and is no part of the view."""
        ready = self._ready(now)
        floors: dict[str, int] = {}
        queues: dict[str, KubernetesObject] = {}
        unread: dict[str, str] = {}
        deployments = []
        for workers in self._configuration.workers:
            try:
                floors[workers.name], replicas, current = self._replicas(workers)
            except KubernetesError as error:
                unread[workers.name] = str(error)
                continue
            up = ready.get((workers.release, workers.role), current)
            deployments.append(self._deployment(workers, replicas, min(up, replicas)))
        for queue in self._configuration.queues:
            try:
                queues[queue.pool] = self._found(CLUSTER_QUEUES.format(pool=queue.pool))
            except KubernetesError as error:
                unread[queue.pool] = str(error)
        view = CellView(tuple(deployments), tuple(self._pools(queues)))
        return LiveCell(view, floors, queues, unread)

    def _replicas(self, workers: ShiftedWorkers) -> tuple[int, int, int]:
        """Return the floor, the replicas that are wanted, and the replicas that exist."""
        names = {"namespace": workers.namespace, "name": workers.name}
        scaled = self._found(SCALED_OBJECTS.format(**names))
        floor = int(scaled["spec"].get("minReplicaCount", 0))
        status = self._found(_AUTOSCALERS.format(**names)).get("status", {})
        current = int(status.get("currentReplicas", 0))
        return floor, int(status.get("desiredReplicas", 0)) or current, current

    def _found(self, path: str) -> KubernetesObject:
        found = self._kubernetes.get(path)
        if found is None:
            raise KubernetesError(f"{path} does not exist", 404)
        return found

    def _deployment(self, workers: ShiftedWorkers, replicas: int, ready: int) -> DeploymentView:
        return DeploymentView(
            name=workers.name,
            pool=workers.pool,
            least=workers.least,
            most=workers.most,
            replicas=replicas,
            ready=ready,
            capacity=workers.capacity,
            accelerators=workers.accelerators,
            batch_places=self._configuration.batch_share(workers),
        )

    def _pools(self, queues: Mapping[str, KubernetesObject]) -> Iterator[PoolView]:
        for queue in self._configuration.queues:
            if queue.pool in queues:
                yield PoolView(name=queue.pool, accelerators=queue.accelerators)

    def _ready(self, now: float) -> Mapping[tuple[str, str], int]:
        """Return the workers that answer, by release and role. Nothing if CloudWatch does not answer."""
        query = f"sum by (release, role) (serving_workers_up{{platform={text_literal(self._platform)}}})"
        try:
            found = self._metrics.instant(query, now)
        except MetricsError as error:
            _logger.warning("workers that are up are not known: %s", error)
            return {}
        return {
            (each.labels.get("release", ""), each.labels.get("role", "")): int(each.points[0][1])
            for each in found
        }


def quota_of(queue: ShiftedQueue, live: KubernetesObject) -> int:
    """Return the present nominal quota of a pool's own accelerators.

    Parameters
    ----------
    queue
        The pool.
    live
        Its ClusterQueue.
    """
    for group in live["spec"].get("resourceGroups", []):
        for flavor in group["flavors"]:
            if flavor["name"] == queue.pool:
                for resource in flavor["resources"]:
                    if resource["name"] == queue.resource:
                        return int(resource["nominalQuota"])
    raise KubernetesError(f"the ClusterQueue {queue.pool} has no quota of {queue.resource}")
