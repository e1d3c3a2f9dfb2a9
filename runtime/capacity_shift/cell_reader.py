"""What runs now: floors and replicas from the cluster, ready workers from the recorded series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aws_lambda_powertools import Logger

from capacity_shift.cluster_numbers import ClusterNumbers, LiveQueue
from inference_contracts.shift_configuration import ShiftConfiguration, ShiftedWorkers
from inference_decisions.capacity_shift.shift_view import CellView, DeploymentView, PoolView
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from operations.operations_errors import MetricsError, OperationsError
from operations.promql import text_literal

_logger = Logger(child=True)


@dataclass(frozen=True, slots=True)
class LiveCell:
    """What a run read."""

    view: CellView
    """Input of the decision."""
    floors: Mapping[str, int]
    """Present floor by the name of the workers."""
    queues: Mapping[str, LiveQueue]
    """Queues for jobs by pool."""
    unread: Mapping[str, str]
    """What could not be read, in words, by name."""


class CellReader:
    """Reads what runs in a cell.

    configuration: What the shift moves.
    numbers: What the cluster says and keeps.
    metrics: CloudWatch's PromQL.
    """

    def __init__(
        self,
        platform: str,
        configuration: ShiftConfiguration,
        numbers: ClusterNumbers,
        metrics: CloudWatchPromql,
    ) -> None:
        self._platform, self._configuration = platform, configuration
        self._numbers, self._metrics = numbers, metrics

    def read(self, now: float) -> LiveCell:
        """Read the cell. What cannot be read is named, and is no part of the view."""
        ready = self._ready(now)
        floors: dict[str, int] = {}
        queues: dict[str, LiveQueue] = {}
        unread: dict[str, str] = {}
        deployments = []
        for workers in self._configuration.workers:
            try:
                found = self._numbers.workers(workers)
            except OperationsError as error:
                unread[workers.name] = str(error)
                continue
            floors[workers.name] = found.floor
            up = ready.get((workers.release, workers.role), found.current)
            deployments.append(self._deployment(workers, found.replicas, min(up, found.replicas)))
        for queue in self._configuration.queues:
            try:
                queues[queue.pool] = self._numbers.queue(queue)
            except OperationsError as error:
                unread[queue.pool] = str(error)
        view = CellView(tuple(deployments), tuple(self._pools(queues)))
        return LiveCell(view, floors, queues, unread)

    def _deployment(self, workers: ShiftedWorkers, replicas: int, ready: int) -> DeploymentView:
        return DeploymentView(
            name=workers.name,
            pool=workers.pool,
            minimum=workers.least,
            maximum=workers.most,
            replicas=replicas,
            ready=ready,
            capacity=workers.capacity,
            accelerators=workers.accelerators,
            batch_places=self._configuration.batch_share(workers),
        )

    def _pools(self, queues: Mapping[str, LiveQueue]) -> Iterator[PoolView]:
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
