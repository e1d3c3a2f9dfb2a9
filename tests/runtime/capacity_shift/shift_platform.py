"""A platform with a capacity shift: AWS in the process, an API server in memory, and a scripted decision."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from capacity_shift.cell_reader import CellReader, DemandReader
from capacity_shift.cluster_numbers import ClusterNumbers, KubernetesNumbers
from capacity_shift.shift_changes import ShiftActuators
from capacity_shift.shift_run import ShiftRun

from inference_contracts.operations_names import freeze_parameter
from inference_contracts.shift_names import (
    ShiftAction,
    ShiftConfiguration,
    ShiftedQueue,
    ShiftedWorkers,
    ceiling_identifier,
)
from inference_decisions.capacity_shift.demand_history import DemandHistory
from inference_decisions.capacity_shift.shift_answer import (
    DeploymentDecision,
    PoolDecision,
    ShiftDecision,
    ShiftReason,
)
from inference_decisions.capacity_shift.shift_view import CellView, DeploymentState, ShiftSettings, ShiftState
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql, MetricSeries
from operations.freeze_switch import read_freeze
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import KubernetesError, MetricsError
from operations.operations_table import OperationsTable

NOW = 1_800_000_000.0
PLATFORM, MODEL = "chat", "qwen3-8b"
FREEZE = freeze_parameter(PLATFORM, "main")
REASON = (ShiftReason("forecast", "as the test says"),)
#: Floor, ceiling and place in the order of a role.
Range = tuple[int, int, int]


def shared_decision(
    view: CellView, settings: ShiftSettings, at: float, ranges: Mapping[str, Range]
) -> ShiftDecision:
    """Return a decision about a shared pool, with the range of each role by its name."""
    return ShiftDecision(
        decided_at=at,
        carried_out=settings.freeze != "frozen",
        deployments=tuple(
            DeploymentDecision(
                name=each.name,
                floor=ranges[each.name][0],
                ceiling=ranges[each.name][1],
                drain_order=ranges[each.name][2],
                batch_places=4,
                lent=0.0,
                reasons=REASON,
                forecast=None,
            )
            for each in view.deployments
        ),
        pools=(),
        state=ShiftState(decided_at=at),
    )


def shifted_workers(name: str = "main", *, model: str = MODEL, role: str = "worker") -> ShiftedWorkers:
    release = f"{model}-{name}"
    return ShiftedWorkers(
        name=f"{release}-{role}",
        namespace="models",
        release=release,
        role=role,
        model=model,
        pool="l40s",
        least=2,
        most=10,
        capacity=8.0,
        accelerators=1,
    )


def shift_configuration(action: ShiftAction = "shift", *workers: ShiftedWorkers) -> ShiftConfiguration:
    return ShiftConfiguration(
        action=action,
        safety_percent=15,
        reclaim_seconds=600,
        workers=workers or (shifted_workers(),),
        queues=(ShiftedQueue(pool="l40s", resource="nvidia.com/gpu", accelerators=12, quota=2),),
        batch_places={MODEL: 16},
    )


class ApiServer(KubernetesApi):
    """ScaledObjects, autoscalers and queues in memory, with the patches that were made in their order."""

    def __init__(self, configuration: ShiftConfiguration) -> None:
        super().__init__("http://127.0.0.1:1", lambda: "token")
        self.objects: dict[str, KubernetesObject] = {}
        self.patches: list[tuple[str, Any]] = []
        self.lists: list[str] = []
        self.fault: KubernetesError | None = None
        self.fails_on_patch: str | None = None
        for each in configuration.workers:
            self.objects[f"scaledobjects/{each.name}"] = {
                "metadata": {"name": each.name},
                "spec": {"minReplicaCount": each.least},
            }
            self.objects[f"horizontalpodautoscalers/keda-hpa-{each.name}"] = {
                "metadata": {"name": f"keda-hpa-{each.name}"},
                "status": {"currentReplicas": 4, "desiredReplicas": 4},
            }
        for queue in configuration.queues:
            quota = [{"name": "cpu", "nominalQuota": "64"}, {"name": queue.resource, "nominalQuota": "2"}]
            flavors = [{"name": queue.pool, "resources": quota}]
            self.objects[f"clusterqueues/{queue.pool}"] = {
                "metadata": {"resourceVersion": "7"},
                "spec": {"resourceGroups": [{"flavors": flavors}]},
            }

    def get(self, path: str) -> KubernetesObject | None:
        if self.fault:
            raise self.fault
        return copy.deepcopy(self.objects.get("/".join(path.split("/")[-2:])))

    def list(self, path: str, **_selectors: str) -> Iterator[KubernetesObject]:
        if self.fault:
            raise self.fault
        self.lists.append(path)
        kind = path.rpartition("/")[2]
        yield from (copy.deepcopy(each) for name, each in self.objects.items() if name.startswith(f"{kind}/"))

    def patch(self, path: str, change: Mapping[str, Any]) -> KubernetesObject:
        if self.fault:
            raise self.fault
        name = "/".join(path.split("/")[-2:])
        if self.fails_on_patch and self.fails_on_patch in name:
            raise KubernetesError(f"{name} was changed", 409)
        self.patches.append((name, change))
        self.objects[name]["spec"].update(copy.deepcopy(change["spec"]))
        return self.objects[name]

    def floor(self, workers: ShiftedWorkers) -> int:
        return int(self.objects[f"scaledobjects/{workers.name}"]["spec"]["minReplicaCount"])

    def quota(self, pool: str = "l40s") -> int:
        groups = self.objects[f"clusterqueues/{pool}"]["spec"]["resourceGroups"]
        return int(groups[0]["flavors"][0]["resources"][1]["nominalQuota"])


class Series(CloudWatchPromql):
    """CloudWatch's PromQL: requests in flight by release, one value per minute since `begin`."""

    def __init__(self, in_flight: Mapping[str, float]) -> None:
        super().__init__(
            "http://127.0.0.1:1", lambda _method, _address, headers, _body: headers, failure=MetricsError
        )
        self.in_flight = in_flight
        self.begin = NOW - 2 * 86400
        self.fault: MetricsError | None = None
        self.asked: list[tuple[float, float]] = []

    def instant(self, query: str, at: float) -> tuple[MetricSeries, ...]:
        assert "serving_workers_up" in query
        if self.fault:
            raise self.fault
        return tuple(
            MetricSeries({"release": release, "role": "worker"}, ((at, 3.0),)) for release in self.in_flight
        )

    def range(self, query: str, start: float, end: float, step_seconds: float) -> tuple[MetricSeries, ...]:
        assert "serving_requests_in_flight" in query
        if self.fault:
            raise self.fault
        self.asked.append((start, end))
        times = [at for at in range(int(start), int(end) + 1, int(step_seconds)) if at >= self.begin]
        return tuple(
            MetricSeries({"release": release}, tuple((float(at), value) for at in times))
            for release, value in self.in_flight.items()
        )


@dataclass
class Script:
    """A decision that tests set, made as the real one makes it: nothing while it is frozen or observes."""

    floor: int = 6
    places: int = 4
    accelerators: int = 8
    seen: list[tuple[Mapping[str, DemandHistory], CellView, ShiftState | None, ShiftSettings]] = field(
        default_factory=list
    )

    def decide(
        self,
        histories: Mapping[str, DemandHistory],
        view: CellView,
        state: ShiftState | None,
        settings: ShiftSettings,
        now: float,
    ) -> ShiftDecision:
        self.seen.append((histories, view, state, settings))
        return ShiftDecision(
            decided_at=now,
            carried_out=settings.action == "shift" and settings.freeze != "frozen",
            deployments=tuple(
                DeploymentDecision(
                    name=each.name,
                    floor=self.floor,
                    batch_places=self.places,
                    lent=0.25,
                    reasons=REASON,
                    forecast=None,
                )
                for each in view.deployments
            ),
            pools=tuple(
                PoolDecision(name=each.name, batch_accelerators=self.accelerators, reasons=REASON)
                for each in view.pools
            ),
            state=ShiftState(
                decided_at=now,
                deployments={each.name: DeploymentState(floor=self.floor) for each in view.deployments},
            ),
        )


@dataclass
class ShiftPlatform:
    """The platform, and a run of its shift."""

    configuration: ShiftConfiguration
    api: ApiServer
    series: Series
    script: Script
    table: OperationsTable
    batch_table: Any

    def numbers(self) -> ClusterNumbers:
        return KubernetesNumbers(self.api)

    def new_run(self) -> ShiftRun:
        """A new process: it remembers nothing."""
        numbers = self.numbers()
        return ShiftRun(
            configuration=self.configuration,
            demand=DemandReader(
                PLATFORM,
                self.configuration.workers,
                self.series,
                boto3.client("cloudwatch"),
                self.configuration.batch_releases,
            ),
            cell=CellReader(PLATFORM, self.configuration, numbers, self.series, self.batch_table),
            actuators=ShiftActuators(self.configuration, numbers, self.batch_table),
            table=self.table,
            freeze=lambda: read_freeze(boto3.client("ssm"), FREEZE, "shift"),
            decide=lambda *arguments: self.script.decide(*arguments),  # noqa: PLW0108 - tests replace it
        )

    @property
    def workers(self) -> ShiftedWorkers:
        return self.configuration.workers[0]

    def ceiling(self, model: str = MODEL) -> dict[str, Any] | None:
        item = self.batch_table.get_item(Key={"id": ceiling_identifier(model)}).get("Item")
        return None if item is None else dict(item["record"])

    def audits(self) -> list[dict[str, Any]]:
        return [each.content for each in self.table.list("audit#", NOW)]


def create_tables() -> tuple[Any, Any]:
    """Create the tables and the freeze switch as the stacks do."""
    service = boto3.resource("dynamodb")
    tables = []
    for name, keys in (("operations", ("scope", "entry")), ("records", ("id",))):
        tables.append(
            service.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
                KeySchema=[
                    {"AttributeName": key, "KeyType": kind}
                    for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
                ],
            )
        )
    boto3.client("ssm").put_parameter(Name=FREEZE, Value="none", Type="String")
    return tables[0], tables[1]


def new_platform(configuration: ShiftConfiguration) -> ShiftPlatform:
    operations, records = create_tables()
    return ShiftPlatform(
        configuration=configuration,
        api=ApiServer(configuration),
        series=Series({each.release: 20.0 for each in configuration.workers}),
        script=Script(),
        table=OperationsTable(operations, PLATFORM, "main"),
        batch_table=records,
    )
