"""Services, hosts and tasks of a platform's ECS cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inference_blueprints.operate.aws.account import Account
from inference_contracts.task_tags import LABEL_TAGS

EcsObject = Mapping[str, Any]
#: Most objects of one call (Amazon ECS API Reference, DescribeServices, DescribeContainerInstances,
#: DescribeTasks).
_SERVICES, _HOSTS, _TASKS = 10, 100, 100


def cluster_exists(account: Account, cluster: str) -> bool:
    """Return whether the cluster is active."""
    found = account.client("ecs").describe_clusters(clusters=[cluster])["clusters"]
    return any(each["status"] == "ACTIVE" for each in found)


def services(account: Account, cluster: str) -> list[EcsObject]:
    """Return the active services with their tags, by name."""
    client = account.client("ecs")
    pages = client.get_paginator("list_services").paginate(cluster=cluster)
    arns = [arn for page in pages for arn in page["serviceArns"]]
    found = [
        service
        for part in _parts(arns, _SERVICES)
        for service in client.describe_services(cluster=cluster, services=part, include=["TAGS"])["services"]
        if service["status"] == "ACTIVE"
    ]
    return sorted(found, key=lambda each: str(each["serviceName"]))


def hosts(account: Account, cluster: str) -> list[EcsObject]:
    """Return the container instances with their health."""
    client = account.client("ecs")
    pages = client.get_paginator("list_container_instances").paginate(cluster=cluster)
    arns = [arn for page in pages for arn in page["containerInstanceArns"]]
    return [
        host
        for part in _parts(arns, _HOSTS)
        for host in client.describe_container_instances(
            cluster=cluster, containerInstances=part, include=["CONTAINER_INSTANCE_HEALTH"]
        )["containerInstances"]
    ]


def tasks(account: Account, cluster: str) -> list[EcsObject]:
    """Return the tasks that have not stopped. One that drains is wanted as STOPPED."""
    client = account.client("ecs")
    arns = [
        arn
        for wanted in ("RUNNING", "STOPPED")
        for page in client.get_paginator("list_tasks").paginate(cluster=cluster, desiredStatus=wanted)
        for arn in page["taskArns"]
    ]
    return [
        task
        for part in _parts(list(dict.fromkeys(arns)), _TASKS)
        for task in client.describe_tasks(cluster=cluster, tasks=part)["tasks"]
        if task["lastStatus"] != "STOPPED"
    ]


def tags_of(found: EcsObject) -> dict[str, str]:
    """Return the tags of an object."""
    return {each["key"]: each["value"] for each in found.get("tags", [])}


def serves(service: EcsObject) -> bool:
    """Return whether a service belongs to a release of a model."""
    return bool(tags_of(service).get(LABEL_TAGS["release"]))


def _parts(values: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(values), size):
        yield list(values[start : start + size])
