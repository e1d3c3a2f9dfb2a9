"""A platform on ECS with a capacity shift: ECS and Application Auto Scaling emulated in the process.

The emulated Application Auto Scaling keeps numbers and does not scale: AWS raises a service that is below its
new smallest capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from capacity_shift.cluster_numbers import ClusterNumbers
from capacity_shift.ecs_numbers import EcsNumbers

from inference_contracts.shift_names import ShiftAction, ShiftConfiguration, ShiftedWorkers
from tests.runtime.capacity_shift.shift_platform import (
    MODEL,
    PLATFORM,
    ShiftPlatform,
    new_platform,
    shifted_workers,
)

TARGET = {"ServiceNamespace": "ecs", "ScalableDimension": "ecs:service:DesiredCount"}
SET_FLOOR = "RegisterScalableTarget"


class EcsShiftPlatform(ShiftPlatform):
    """The platform, whose numbers are those of services."""

    def numbers(self) -> ClusterNumbers:
        return EcsNumbers(PLATFORM, boto3.client("application-autoscaling"), boto3.client("ecs"))


def resource(workers: ShiftedWorkers) -> str:
    return f"service/{PLATFORM}/{workers.name}"


def target_of(workers: ShiftedWorkers) -> dict[str, Any]:
    client = boto3.client("application-autoscaling")
    (found,) = client.describe_scalable_targets(ServiceNamespace="ecs", ResourceIds=[resource(workers)])[
        "ScalableTargets"
    ]
    return dict(found)


def floor(workers: ShiftedWorkers) -> int:
    return int(target_of(workers)["MinCapacity"])


def deploy(workers: ShiftedWorkers, minimum: int, maximum: int) -> None:
    """Register a target as CloudFormation does: with all of its numbers."""
    boto3.client("application-autoscaling").register_scalable_target(
        ResourceId=resource(workers), MinCapacity=minimum, MaxCapacity=maximum, **TARGET
    )


def ecs_configuration(action: ShiftAction = "shift", *workers: ShiftedWorkers) -> ShiftConfiguration:
    return ShiftConfiguration(
        action=action,
        safety_percent=15,
        reclaim_seconds=600,
        workers=workers or (shifted_workers(),),
        queues=(),
        batch_places={MODEL: 16},
    )


def new_ecs_platform(configuration: ShiftConfiguration) -> EcsShiftPlatform:
    of_kubernetes = new_platform(configuration)
    ecs = boto3.client("ecs")
    ecs.create_cluster(clusterName=PLATFORM)
    ecs.register_task_definition(
        family="worker", containerDefinitions=[{"name": "main", "image": "engine", "memory": 512}]
    )
    for each in configuration.workers:
        ecs.create_service(cluster=PLATFORM, serviceName=each.name, taskDefinition="worker", desiredCount=4)
        deploy(each, each.least, each.most)
    return EcsShiftPlatform(
        configuration=configuration,
        api=of_kubernetes.api,
        series=of_kubernetes.series,
        script=of_kubernetes.script,
        table=of_kubernetes.table,
        batch_table=of_kubernetes.batch_table,
    )


@contextmanager
def recorded() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Record the calls of AWS within the block, with their parameters."""
    calls: list[tuple[str, dict[str, Any]]] = []
    call = BaseClient._make_api_call

    def record(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        calls.append((operation, parameters))
        return call(client, operation, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", record)
        yield calls
