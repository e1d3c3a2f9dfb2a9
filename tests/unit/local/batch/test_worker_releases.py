"""Batch workers are those releases and services whose environment names a queue of shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from inference_local.batch.local_workers import WorkerRelease, worker_releases, worker_services
from inference_local.emulator.records import RecordedRelease

ENVIRONMENT = {"BATCH_MODEL": "m", "BATCH_QUEUE_URL": "http://127.0.0.1:1/q"}


def release(name: str, **values: object) -> RecordedRelease:
    return RecordedRelease(name, "inference", "asset", "", rendered=True, values=values)


def test_other_charts_are_no_workers() -> None:
    found = worker_releases(
        [
            release("m-main", environment={"HOME": "/"}),
            release("karpenter", settings={}),
            release("m.batch", replicas=2, environment=ENVIRONMENT),
        ]
    )
    assert found == [WorkerRelease("m", 2, ENVIRONMENT)]


@pytest.mark.parametrize(("minimum", "here"), [(0, 1), (1, 1), (3, 3)])
def test_of_scaled_workers_as_many_run_here_as_stay_and_one_at_least(minimum: int, here: int) -> None:
    scaling = {"min": minimum, "max": 9}
    found = worker_releases([release("m.batch", scaling=scaling, environment=ENVIRONMENT)])
    assert found == [WorkerRelease("m", here, ENVIRONMENT)]


def test_a_queue_may_have_several_addresses() -> None:
    """Red if workers here keep addresses of the cloud, or send requests to deployments without workers."""
    addresses = {
        "BATCH_ENDPOINT": "http://m.try.internal",
        "BATCH_LENT_ENDPOINTS": "http://m--batch-night.try.internal,http://m--batch-dawn.try.internal",
    }
    found = WorkerRelease("m", 1, ENVIRONMENT | addresses)
    assert (found.address, found.lent_addresses) == ("m", ("m--batch-night", "m--batch-dawn"))
    assert WorkerRelease("m", 1, ENVIRONMENT).lent_addresses == ()


@pytest.fixture
def ecs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    with mock_aws():
        yield boto3.client("ecs", region_name="us-west-2")


def add_service(ecs: Any, name: str, count: int, environment: dict[str, str]) -> None:
    ecs.register_task_definition(
        family=name,
        containerDefinitions=[
            {
                "name": "main",
                "image": "image",
                "memory": 1024,
                "environment": [{"name": key, "value": value} for key, value in environment.items()],
            }
        ],
    )
    ecs.create_service(cluster="workers", serviceName=name, taskDefinition=name, desiredCount=count)


def test_services_of_workers_are_found_by_what_their_tasks_are_told(ecs: Any) -> None:
    assert worker_services(ecs) == []
    ecs.create_cluster(clusterName="empty")
    ecs.create_cluster(clusterName="workers")
    add_service(ecs, "m", 2, ENVIRONMENT)
    add_service(ecs, "other", 1, {"HOME": "/"})
    assert worker_services(ecs) == [WorkerRelease("m", 2, ENVIRONMENT)]


def test_a_service_that_has_no_task_yet_has_a_worker_here(ecs: Any) -> None:
    ecs.create_cluster(clusterName="workers")
    add_service(ecs, "m", 0, ENVIRONMENT)
    assert worker_services(ecs) == [WorkerRelease("m", 1, ENVIRONMENT)]
