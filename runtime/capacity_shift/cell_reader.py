"""What runs now: floors and replicas from the cluster, ready workers from the recorded series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from capacity_shift.cluster_numbers import ClusterNumbers, LiveHosts, LiveQueue, LiveWorkers
from inference_contracts import batch_names
from inference_contracts.batch_names import ID_ATTRIBUTE
from inference_contracts.shift_names import (
    CEILING_AT,
    CEILING_PLACES,
    CEILING_SECONDS,
    ShiftConfiguration,
    ShiftedWorkers,
    deadlines_identifier,
)
from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory
from inference_decisions.capacity_shift.shift_view import CellView, DeploymentView, PoolView
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from operations.operations_errors import MetricsError, OperationsError
from operations.promql import text_literal

# Real-time demand of the releases: their requests in flight, less those of batch.
#
# Requests in flight are the recording ``serving_requests_in_flight``, which CloudWatch gets by OTLP and
# returns by PromQL. Batch's are the metric ``InFlight`` of its workers, which they write once a minute in
# CloudWatch's embedded format and which only GetMetricData returns. CloudWatch keeps points of one minute for
# 15 days: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html

Bins = dict[int, float]

#: What is learnt from. It stays within the 15 days for which points of one minute are kept.
_HISTORY_SECONDS: Final = 14 * 86400
#: Length of one query: 1,440 points of a series.
_QUERY_SECONDS: Final = 86400
#: Newest part that is read again by each run, because points arrive late.
_AGAIN_SECONDS: Final = 900
#: Batch's workers write once a minute, each at its own second, and their lines arrive later than the series.
#: So a bin has the mean of the lines of this time up to its end.
_BATCH_SECONDS: Final = 180


class DemandReader:
    """Reads demand, and keeps what it read for the next run of the same process.

    workers: The workers whose demand is read.
    metrics: CloudWatch's PromQL.
    cloudwatch: CloudWatch's client, for metrics of the embedded format.
    batch_releases: Releases that serve a queue, by model. A model that is missing serves batch with all.
    """

    def __init__(
        self,
        platform: str,
        workers: Sequence[ShiftedWorkers],
        metrics: CloudWatchPromql,
        cloudwatch: Any,
        batch_releases: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._platform, self._workers = platform, workers
        self._batch_releases: dict[str, set[str]] = defaultdict(set)
        for each in workers:
            self._batch_releases[each.model].add(each.release)
        for model, names in (batch_releases or {}).items():
            self._batch_releases[model] = set(names)
        self._metrics, self._cloudwatch = metrics, cloudwatch
        self._all: dict[str, Bins] = defaultdict(dict)
        self._batch: dict[str, Bins] = defaultdict(dict)
        self._read_until = 0

    def histories(self, now: float) -> Mapping[str, DemandHistory]:
        """Return the real-time demand by the name of a ScaledObject, in requests in flight of its release.

        Raises MetricsError if CloudWatch did not answer completely. What was read before is kept.
        """
        end = int(now) // BIN_SECONDS * BIN_SECONDS
        start = max(end - _HISTORY_SECONDS, min(self._read_until, end) - _AGAIN_SECONDS)
        for begin in range(start, end, _QUERY_SECONDS):
            self._read(begin, min(begin + _QUERY_SECONDS, end))
            # A run that is killed or fails goes on here, as long as its process lives.
            self._read_until = min(begin + _QUERY_SECONDS, end)
        self._forget(end - _HISTORY_SECONDS)
        return self.known()

    def known(self) -> Mapping[str, DemandHistory]:
        """Return what earlier runs of this process read."""
        of_models = self._of_models()
        # Workers of several roles share the demand of their release.
        by_release = {
            each.release: DemandHistory.of_samples(self._real_time(each, of_models[each.model]))
            for each in {each.release: each for each in self._workers}.values()
            if self._all.get(each.release)
        }
        return {each.name: by_release[each.release] for each in self._workers if each.release in by_release}

    def _read(self, start: int, end: int) -> None:
        query = "sum by (release) (serving_requests_in_flight{platform=" + text_literal(self._platform) + "})"
        # A point at a time is the newest sample before it, so the first point is the end of the first bin.
        for series in self._metrics.range(query, start + BIN_SECONDS, end, BIN_SECONDS):
            self._all[series.labels.get("release", "")].update(
                (int(at), value) for at, value in series.points
            )
        for model, points in self._batch_in_flight(start - _BATCH_SECONDS, end):
            self._batch[model].update(points)

    def _batch_in_flight(self, start: int, end: int) -> Iterator[tuple[str, Bins]]:
        """Yield the sum of batch's requests in flight by model, by the end of each bin."""
        models = sorted({each.model for each in self._workers})
        queries = [
            {
                "Id": f"m{place}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": batch_names.METRIC_NAMESPACE,
                        "MetricName": batch_names.IN_FLIGHT,
                        "Dimensions": [
                            {"Name": batch_names.PLATFORM_DIMENSION, "Value": self._platform},
                            {"Name": batch_names.MODEL_DIMENSION, "Value": model},
                        ],
                    },
                    "Period": BIN_SECONDS,
                    "Stat": "Sum",
                },
            }
            for place, model in enumerate(models)
        ]
        request: dict[str, Any] = {
            "MetricDataQueries": queries,
            "StartTime": datetime.fromtimestamp(start, UTC),
            "EndTime": datetime.fromtimestamp(end, UTC),
        }
        while True:
            try:
                answer = self._cloudwatch.get_metric_data(**request)
            except (ClientError, BotoCoreError) as error:
                raise MetricsError(f"CloudWatch did not answer: {error}") from error
            for result in answer["MetricDataResults"]:
                points = zip(result["Timestamps"], result["Values"], strict=True)
                # The time of a point is the beginning of its period.
                yield (
                    models[int(result["Id"][1:])],
                    {int(at.timestamp()) + BIN_SECONDS: value for at, value in points},
                )
            if not answer.get("NextToken"):
                return
            request["NextToken"] = answer["NextToken"]

    def _of_models(self) -> Mapping[str, Bins]:
        """Return the requests in flight of each model's releases that serve batch, by the end of each bin."""
        totals: dict[str, Bins] = defaultdict(dict)
        for model, release in sorted(
            (model, release) for model, names in self._batch_releases.items() for release in names
        ):
            total = totals[model]
            for at, value in self._all.get(release, {}).items():
                total[at] = total.get(at, 0.0) + value
        return totals

    def _real_time(self, workers: ShiftedWorkers, of_model: Bins) -> Iterator[tuple[float, float]]:
        """Yield times and demand of a release.

        Batch's part is divided as all requests of the model's releases that serve batch are.
        """
        shares = workers.release in self._batch_releases[workers.model]
        batch = self._batch.get(workers.model, {}) if shares else {}
        for at, value in self._all[workers.release].items():
            near = [batch[each] for each in range(at, at - _BATCH_SECONDS, -BIN_SECONDS) if each in batch]
            total = of_model.get(at, 0.0)
            of_batch = sum(near) / len(near) * value / total if near and total > 0 else 0.0
            yield float(at), max(0.0, value - of_batch)

    def _forget(self, before: int) -> None:
        for bins in (*self._all.values(), *self._batch.values()):
            for at in [each for each in bins if each < before]:
                del bins[at]


_logger = Logger(child=True)


@dataclass(frozen=True, slots=True)
class LiveCell:
    """What a run read."""

    view: CellView
    """Input of the decision."""
    workers: Mapping[str, LiveWorkers]
    """Present numbers by the name of the workers."""
    queues: Mapping[str, LiveQueue]
    """Queues for jobs by pool."""
    unread: Mapping[str, str]
    """What could not be read, in words, by name."""
    hosts: Mapping[str, LiveHosts] = field(default_factory=dict)
    """Hosts of shared pools on which nothing pre-empts, by pool."""


class CellReader:
    """Reads what runs in a cell.

    configuration: What the shift moves.
    numbers: What the cluster says and keeps.
    metrics: CloudWatch's PromQL.
    batch_table: Table of batch's records, a resource of boto3.
    """

    def __init__(
        self,
        platform: str,
        configuration: ShiftConfiguration,
        numbers: ClusterNumbers,
        metrics: CloudWatchPromql,
        batch_table: Any,
    ) -> None:
        self._platform, self._configuration = platform, configuration
        self._numbers, self._metrics, self._batch_table = numbers, metrics, batch_table

    def read(self, now: float) -> LiveCell:
        """Read the cell. What cannot be read is named, and is no part of the view."""
        ready = self._ready(now)
        live: dict[str, LiveWorkers] = {}
        queues: dict[str, LiveQueue] = {}
        unread: dict[str, str] = {}
        deployments = []
        numbers, hosts = self._hosts(self._held(self._workers()))
        needed = {model: self._needed_places(model, now) for model in self._configuration.lent_models}
        for workers in self._configuration.workers:
            found = numbers[workers.name]
            if isinstance(found, OperationsError):
                unread[workers.name] = str(found)
                continue
            live[workers.name] = found
            up = ready.get((workers.release, workers.role), found.current)
            view = DeploymentView.of(
                workers,
                self._configuration,
                replicas=found.replicas,
                ready=min(up, found.replicas),
                needed_places=needed.get(workers.model),
            )
            deployments.append(view)
        for queue in self._configuration.queues:
            try:
                queues[queue.pool] = self._numbers.queue(queue)
            except OperationsError as error:
                unread[queue.pool] = str(error)
        cell = CellView(tuple(deployments), tuple(self._pools(queues)))
        return LiveCell(cell, live, queues, unread, hosts)

    def _held(
        self, numbers: Mapping[str, LiveWorkers | OperationsError]
    ) -> Mapping[str, LiveWorkers | OperationsError]:
        """Leave out shared pools of which something cannot be read: nobody knows what the others may have."""
        found = dict(numbers)
        for pool in self._configuration.shared_pools:
            names = [each.name for each in self._configuration.workers if each.pool == pool.pool]
            unread = [name for name in names if isinstance(numbers[name], OperationsError)]
            for name in names if unread else ():
                if name not in unread:
                    found[name] = OperationsError(
                        f"its pool {pool.pool} stays as it is, because {unread[0]} could not be read"
                    )
        return found

    def _hosts(
        self, numbers: Mapping[str, LiveWorkers | OperationsError]
    ) -> tuple[Mapping[str, LiveWorkers | OperationsError], Mapping[str, LiveHosts]]:
        """Return the hosts of shared pools. Pools whose hosts cannot be read are left out, as above."""
        found, hosts = dict(numbers), {}
        for pool in self._configuration.shared_pools:
            names = [each.name for each in self._configuration.workers if each.pool == pool.pool]
            live = {name: each for name in names if isinstance(each := numbers[name], LiveWorkers)}
            if len(live) < len(names):
                continue
            try:
                of_pool = self._numbers.hosts(pool, live)
            except OperationsError as error:
                found.update(dict.fromkeys(names, error))
            else:
                hosts.update({pool.pool: of_pool} if of_pool else {})
        return found, hosts

    def _workers(self) -> Mapping[str, LiveWorkers | OperationsError]:
        """Return the numbers of all workers. If the cluster does not answer, nobody has any."""
        wanted = self._configuration.workers
        try:
            return self._numbers.workers(wanted)
        except OperationsError as error:
            return {each.name: error for each in wanted}

    def _needed_places(self, model: str, now: float) -> int | None:
        """Return the places that the deadlines of a model need. None if batch does not say so."""
        try:
            item = self._batch_table.get_item(Key={ID_ATTRIBUTE: deadlines_identifier(model)}).get("Item")
            record = item["record"] if item else {}
            places, age = int(record[CEILING_PLACES]), now - float(record[CEILING_AT])
        except (ClientError, BotoCoreError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            _logger.warning("what deadlines of %s need is not known: %r", model, error)
            return None
        if places < 0 or abs(age) > CEILING_SECONDS:
            _logger.warning("deadlines of %s need %s places, said %.0f s ago: not used", model, places, age)
            return None
        return places

    def _pools(self, queues: Mapping[str, LiveQueue]) -> Iterator[PoolView]:
        for queue in self._configuration.queues:
            if queue.pool in queues:
                yield PoolView(name=queue.pool, accelerators=queue.accelerators)
        for shared in self._configuration.shared_pools:
            yield PoolView.of(shared)

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
