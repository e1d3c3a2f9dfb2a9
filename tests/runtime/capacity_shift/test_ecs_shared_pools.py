"""The capacity shift on a shared pool of ECS, on the stand-in's control plane with a clock of the test.

Placement, deployments with their circuit breaker, managed scaling of hosts and Application Auto Scaling are
the stand-in's, which follows the documents that its code names. The test plays the agents of the hosts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError
from capacity_shift.cluster_numbers import ClusterNumbers
from capacity_shift.ecs_numbers import EcsNumbers

from inference_contracts.ecs_names import POOL_ATTRIBUTE
from inference_contracts.shift_names import SharedPool, ShiftConfiguration, ShiftedWorkers
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from inference_decisions.capacity_shift.shift_decision import decide
from inference_decisions.capacity_shift.shift_view import CellView
from inference_local.emulator.ecs.api.ecs_api import ApiSources, EcsApi
from inference_local.emulator.ecs.api.ecs_shapes import EcsShapes
from inference_local.emulator.ecs.control.cluster_state import EcsTask, TaskStatus
from inference_local.emulator.ecs.scaling.application_scaling import ApplicationScaling
from inference_local.emulator.ecs.scaling.scaling_api import ScalingApi
from inference_local.emulator.refusals import AwsApiError
from tests.runtime.capacity_shift.shift_platform import (
    NOW,
    Range,
    ShiftPlatform,
    new_platform,
    shared_decision,
    shift_configuration,
    shifted_workers,
)
from tests.unit.local.emulator.ecs.control_parts import CLUSTER, POOL, Played, definition

#: Two hosts of four GPUs.
HOSTS, GPUS = 2, 8
#: Longer than a host of the stand-in boots.
_BOOT_SECONDS = 120
_TARGET = {"ServiceNamespace": "ecs", "ScalableDimension": "ecs:service:DesiredCount"}


def _workers(name: str, priority: int, **more: Any) -> ShiftedWorkers:
    return dataclasses.replace(
        shifted_workers(name, model=name),
        pool=POOL,
        priority=priority,
        handover_seconds=200.0,
        **{"least": 1, "most": 6, **more},
    )


FIRST, SECOND = _workers("live", 100), _workers("shop", 80)
LENT = _workers("nightly", 10, least=0, most=8, batch_only=True, tokens_per_accelerator_hour=5.0)


class Cluster(Played):
    """Services of the roles, a task of which has one GPU. Their tasks stop when the test says so."""

    def __init__(self, hosts: int = HOSTS, *, minimum: int = HOSTS) -> None:
        super().__init__(hosts, minimum=minimum)
        self.state.pools[POOL].attributes = {POOL_ATTRIBUTE: POOL}
        #: Whether tasks that stop go on stopping.
        self.holds = False
        shapes = EcsShapes("us-west-2", "111122223333", lambda seconds: seconds)
        ids = itertools.count()
        self.api = EcsApi(
            self.control,
            shapes,
            ApiSources(
                lambda: self.now,
                self.control.around.definitions.get,
                lambda _: True,
                lambda _: self.state.pools[POOL],
            ),
        )
        self.api.answer("CreateCapacityProvider", {"name": POOL, "autoScalingGroupProvider": _GROUP})
        self.api.associate(CLUSTER, [POOL])
        self.scaling = ScalingApi(
            ApplicationScaling(_Services(self), _NoAlarms()),
            _NoAlarms(),
            clock=lambda: self.now,
            new_id=lambda: str(next(ids)),
            place="us-west-2:111122223333",
        )

    def create(self, workers: ShiftedWorkers, desired: int, minimum_healthy: int = 0) -> None:
        """Create a service as CloudFormation does, in a full pool: none is extra in a deployment."""
        need = [{"type": "GPU", "value": str(workers.accelerators)}]
        document = definition(f"{workers.name}:1", resourceRequirements=need)
        self.control.around.definitions[document["taskDefinitionArn"]] = document
        self.api.answer(
            "CreateService",
            {
                "cluster": CLUSTER,
                "serviceName": workers.name,
                "taskDefinition": document["taskDefinitionArn"],
                "desiredCount": desired,
                "capacityProviderStrategy": [{"capacityProvider": POOL, "weight": 1}],
                "deploymentConfiguration": {
                    "maximumPercent": 100,
                    "minimumHealthyPercent": minimum_healthy,
                    "deploymentCircuitBreaker": {
                        "enable": True,
                        "rollback": True,
                        "thresholdConfiguration": {"type": "COUNT", "value": 3},
                    },
                },
            },
        )
        if not workers.batch_only:
            self.scaling.answer(
                "RegisterScalableTarget",
                {**_TARGET, "ResourceId": resource(workers), "MinCapacity": desired, "MaxCapacity": desired},
            )

    def renew(self, workers: ShiftedWorkers) -> None:
        """Deploy another version of a service."""
        service = self.state.services[workers.name]
        document = {**self.control.around.definitions[service.request["taskDefinition"]]}
        document["taskDefinitionArn"] = f"{workers.name}:2"
        self.control.around.definitions[document["taskDefinitionArn"]] = document
        request = {"cluster": CLUSTER, "service": workers.name, "taskDefinition": f"{workers.name}:2"}
        self.api.answer("UpdateService", request)

    def settle(self, rounds: int = 4) -> None:
        """Let tasks start, and those stop that may."""
        for _ in range(rounds):
            self.wait(1)
            for task in list(self.state.tasks.values()):
                if task.address and task.is_live:
                    self.run(task)
                if task.status is TaskStatus.STOPPING and not self.holds:
                    self.end(task, 0)
        self.wait()

    def of(self, workers: ShiftedWorkers) -> list[EcsTask]:
        return [task for task in self.state.tasks_of(workers.name) if task.is_live]

    def running(self, *roles: ShiftedWorkers) -> list[int]:  # type: ignore[override]
        return [sum(task.status is TaskStatus.RUNNING for task in self.of(each)) for each in roles]

    def waiting(self) -> int:
        """Number of tasks that have no host."""
        return sum(task.is_live and not task.instance for task in self.state.tasks.values())

    def range_of(self, workers: ShiftedWorkers) -> tuple[int, int]:
        (found,) = self.scaling.answer(
            "DescribeScalableTargets", {**_TARGET, "ResourceIds": [resource(workers)]}
        )["ScalableTargets"]
        return found["MinCapacity"], found["MaxCapacity"]


_GROUP = {
    "autoScalingGroupArn": "arn:aws:autoscaling:us-west-2:1:autoScalingGroup:1:autoScalingGroupName/1",
    "managedScaling": {"status": "ENABLED"},
}


def resource(workers: ShiftedWorkers) -> str:
    return f"service/{CLUSTER}/{workers.name}"


class _Services:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def state(self, resource: str) -> tuple[int, int, bool] | None:
        found = self._cluster.state.services.get(resource.rpartition("/")[2])
        return (found.desired, len(self._cluster.state.tasks_of(found.name)), False) if found else None

    def set_capacity(self, resource: str, capacity: int) -> None:
        changes = {"cluster": CLUSTER, "service": resource.rpartition("/")[2], "desiredCount": capacity}
        self._cluster.api.answer("UpdateService", changes)


class _NoAlarms:
    def raised(self) -> Mapping[str, Any]:
        return {}

    def value(self, *_: object) -> None:
        return None

    def put(self, *_: object) -> None: ...

    def delete(self, *_: object) -> None: ...


class _Client:
    """A client of boto3 in form."""

    def __init__(self, api: EcsApi | ScalingApi, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self._api, self._calls = api, calls
        self.refuses: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        operation = "".join(part.capitalize() for part in name.split("_"))

        def call(**request: Any) -> dict[str, Any]:
            self._calls.append((operation, request))
            if operation in self.refuses:
                raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "rate"}}, operation)
            try:
                return self._api.answer(operation, request)
            except AwsApiError as error:
                answer = {"Error": {"Code": error.code, "Message": str(error)}}
                raise ClientError(answer, operation) from error

        return call

    def get_paginator(self, name: str) -> _Pages:
        return _Pages(getattr(self, name))


@dataclass
class _Pages:
    call: Any

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        yield self.call(**request)


@dataclass
class EcsPlatform(ShiftPlatform):
    """A platform whose numbers are those of the cluster."""

    cluster: Cluster = dataclasses.field(default_factory=Cluster)
    calls: list[tuple[str, dict[str, Any]]] = dataclasses.field(default_factory=list)
    minute: int = 0

    def __post_init__(self) -> None:
        self.ecs = _Client(self.cluster.api, self.calls)
        self.runner = self.new_run()

    def numbers(self) -> ClusterNumbers:
        return EcsNumbers(CLUSTER, _Client(self.cluster.scaling, self.calls), self.ecs)

    def pass_minute(self, **decided: Range) -> list[str]:
        """Run once with such a decision, let tasks move, and return what was changed, in its order.

        decided: Floor, ceiling and place in the order, by model.
        """
        if decided:
            self.script.decide = _decision(decided)  # type: ignore[method-assign]
        self.calls.clear()
        self.runner.run(NOW + 60 * self.minute)
        self.minute += 1
        changed = [
            request.get("service") or request["ResourceId"].rpartition("/")[2]
            for operation, request in self.calls
            if operation in ("RegisterScalableTarget", "UpdateService")
        ]
        self.cluster.settle()
        return changed


def _decision(decided: Mapping[str, Range]) -> Any:
    def made(_histories: Any, view: CellView, _state: Any, settings: Any, at: float) -> ShiftDecision:
        ranges = {each.name: decided[each.name.partition("-")[0]] for each in view.deployments}
        return shared_decision(view, settings, at, ranges)

    return made


def configuration(fixed: int = 0) -> ShiftConfiguration:
    pool = SharedPool(pool=POOL, accelerators=GPUS - fixed, accelerators_per_node=4, fixed=fixed)
    return dataclasses.replace(
        shift_configuration("shift", FIRST, SECOND, LENT),
        queues=(),
        batch_places={"nightly": 16},
        shared_pools=(pool,),
    )


def a_platform(*numbers: int, cluster: Cluster | None = None) -> EcsPlatform:
    """Return a platform with so many running tasks of the three roles."""
    of_kubernetes = new_platform(configuration())
    cluster = cluster or Cluster()
    for workers, number, healthy in zip((FIRST, SECOND, LENT), numbers, (50, 0, 0), strict=True):
        cluster.create(workers, number, healthy)
    # Hosts start for the tasks, and take them.
    cluster.wait(_BOOT_SECONDS)
    cluster.settle()
    assert cluster.running(FIRST, SECOND, LENT) == list(numbers)
    shared = {each.name: getattr(of_kubernetes, each.name) for each in dataclasses.fields(ShiftPlatform)}
    return EcsPlatform(**shared, cluster=cluster)


@pytest.fixture
def platform(aws_in_process: None) -> EcsPlatform:
    return a_platform(2, 1, 5)


PEAK = {"live": (5, 5, 1), "shop": (1, 1, 2), "nightly": (2, 2, 0)}


def test_batch_drains_then_real_time_starts_and_no_task_ever_waits_for_a_host(platform: EcsPlatform) -> None:
    """Red if real time is asked for while batch drains, or if batch keeps what real time needs."""
    cluster = platform.cluster
    cluster.holds = True
    assert platform.pass_minute(**PEAK) == [LENT.name]
    assert cluster.running(FIRST, SECOND) == [2, 1]
    assert cluster.waiting() == 0
    # It drains for another minute, and nothing more is taken from batch.
    assert platform.pass_minute() == []
    assert platform.audits()[-1]["waiting"] == {POOL: NOW}
    cluster.holds = False
    cluster.settle()
    assert cluster.waiting() == 0
    assert platform.pass_minute() == [FIRST.name]
    assert cluster.range_of(FIRST) == (5, 5)
    assert cluster.running(FIRST, SECOND, LENT) == [5, 1, 2]
    assert platform.pass_minute() == [], "what is right already is not written"
    assert "waiting" not in platform.audits()[-1]


def test_batch_comes_back_when_real_time_has_left(platform: EcsPlatform) -> None:
    platform.pass_minute(**PEAK)
    platform.pass_minute()
    changed = platform.pass_minute(live=(1, 1, 0), shop=(1, 1, 1), nightly=(6, 6, 2))
    # Application Auto Scaling ends tasks above a lower maximum at once. Batch follows a minute later.
    assert changed == [FIRST.name]
    assert platform.pass_minute() == [LENT.name]
    assert platform.cluster.running(FIRST, SECOND, LENT) == [1, 1, 6]
    assert platform.cluster.waiting() == 0


def test_a_stop_that_never_ends_is_told_and_another_task_of_batch_goes(platform: EcsPlatform) -> None:
    """Red if real time waits for a task that its host never stops, and nobody hears of it."""
    cluster = platform.cluster
    cluster.holds = True
    platform.pass_minute(**PEAK)
    for _ in range(4):
        platform.pass_minute()
    failed = platform.audits()[-1].get("failed", ())
    assert any("real time has waited for accelerators of gpu for 240 s" in text for text in failed)
    assert cluster.running(LENT) == [0]
    assert (platform.ceiling("nightly") or {})["places"] == 0, "batch has no places without workers"
    # They stop after all, much later.
    cluster.holds = False
    cluster.settle()
    platform.pass_minute()
    platform.pass_minute()
    assert cluster.running(FIRST, SECOND, LENT) == [5, 1, 2]
    assert platform.pass_minute() == []


def test_a_lost_host_costs_batch_its_places_and_not_real_time(platform: EcsPlatform) -> None:
    """Red if batch keeps its number on what is left of the pool, while real time has no place."""
    cluster = platform.cluster
    steady = {"live": (4, 4, 0), "shop": (1, 1, 1), "nightly": (3, 3, 2)}
    for _ in range(3):
        platform.pass_minute(**steady)
    assert cluster.running(FIRST, SECOND, LENT) == [4, 1, 3]
    lost = next(iter(cluster.state.instances.values()))
    cluster.control.cluster(CLUSTER).hosts.set_status(lost, "DRAINING")
    cluster.settle()
    for _ in range(4):
        platform.pass_minute()
    first, second, lent = cluster.running(FIRST, SECOND, LENT)
    assert lent == 0
    assert first + second == 4
    # What is asked for of real time stays, so its tasks have a place as soon as a host is back.
    assert cluster.range_of(FIRST) == (4, 4)
    cluster.control.cluster(CLUSTER).hosts.set_status(lost, "ACTIVE")
    cluster.settle()
    platform.pass_minute()
    assert cluster.running(FIRST, SECOND, LENT) == [4, 1, 3]


def test_a_new_version_of_each_service_gets_through_in_a_full_pool(platform: EcsPlatform) -> None:
    """Red if a deployment waits for a place that batch has, or trips the circuit breaker."""
    cluster = platform.cluster
    for workers in (LENT, FIRST, SECOND):
        cluster.renew(workers)
        for _ in range(4):
            platform.pass_minute(live=(2, 2, 0), shop=(1, 1, 1), nightly=(5, 5, 2))
        service = cluster.state.services[workers.name]
        assert service.primary.rollout_state == "COMPLETED"
        assert service.request["taskDefinition"] == f"{workers.name}:2"
        assert service.primary.failed_tasks == 0
    assert cluster.running(FIRST, SECOND, LENT) == [2, 1, 5]


def test_a_new_model_finds_room_before_it_exists(aws_in_process: None) -> None:
    """Red if a model that is added to a full pool waits for a place until CloudFormation gives up."""
    cluster = Cluster()
    cluster.create(FIRST, 2)
    cluster.create(LENT, 6)
    cluster.wait(_BOOT_SECONDS)
    cluster.settle()
    shared = new_platform(configuration())
    fields = {each.name: getattr(shared, each.name) for each in dataclasses.fields(ShiftPlatform)}
    platform = EcsPlatform(**fields, cluster=cluster)
    decided = {"live": (2, 2, 1), "shop": (1, 2, 2), "nightly": (4, 4, 0)}
    assert platform.pass_minute(**decided) == [LENT.name]
    assert platform.pass_minute() == []
    assert cluster.running(FIRST, LENT) == [2, 4]
    cluster.create(SECOND, 1)
    cluster.settle()
    platform.pass_minute()
    assert cluster.running(FIRST, SECOND, LENT) == [2, 1, 4]
    assert cluster.range_of(SECOND) == (1, 2)


def test_nothing_of_the_pool_moves_while_its_hosts_cannot_be_read(platform: EcsPlatform) -> None:
    platform.ecs.refuses.add("DescribeContainerInstances")
    assert platform.pass_minute(**PEAK) == []
    [audit] = [each for each in platform.audits() if "unread" in each]
    assert "the hosts of the pool gpu" in audit["unread"][FIRST.name]


@pytest.mark.parametrize(("minimum", "hosts"), [(2, 2), (1, 3)])
def test_tasks_that_wait_bring_hosts_only_where_the_pool_may_grow(minimum: int, hosts: int) -> None:
    """What `validate` refuses: managed scaling would start a host for a task that waits for a drain.

    Amazon ECS Developer Guide, "Automatically manage Amazon ECS capacity with cluster auto scaling": tasks in
    PROVISIONING count as needed instances in CapacityProviderReservation.
    """
    cluster = Cluster(hosts, minimum=minimum)
    cluster.create(FIRST, GPUS)
    cluster.wait(_BOOT_SECONDS)
    cluster.settle()
    cluster.create(SECOND, 1)
    cluster.wait(_BOOT_SECONDS)
    assert len(cluster.state.instances) == hosts
    assert cluster.waiting() == (1 if hosts == HOSTS else 0)


def test_a_day_of_the_real_decision_never_asks_for_a_task_without_a_place(platform: EcsPlatform) -> None:
    """Red if any task waits for a host in a day of quiet, peak and lost metrics."""
    platform.script.decide = decide  # type: ignore[method-assign]
    platform.series.in_flight = {FIRST.release: 8.0, SECOND.release: 4.0, LENT.release: 0.0}
    cluster = platform.cluster

    def pass_minutes(count: int) -> list[int]:
        for _ in range(count):
            # Whoever stops takes longer than until the next run.
            cluster.holds = True
            platform.pass_minute()
            assert cluster.waiting() == 0
            cluster.holds = False
            cluster.settle()
        return cluster.running(FIRST, SECOND, LENT)

    first, second, lent = pass_minutes(12)
    assert first + second + lent == GPUS
    assert lent >= 4
    platform.series.in_flight = {FIRST.release: 40.0, SECOND.release: 4.0, LENT.release: 0.0}
    first, second, lent = pass_minutes(5)
    assert (first >= 5, second >= 1, first + second + lent <= GPUS) == (True, True, True)
