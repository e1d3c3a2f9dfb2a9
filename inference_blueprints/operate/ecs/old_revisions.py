"""Deletes revisions of a platform's task definitions that nothing uses.

CloudFormation deregisters the revision that an update replaces. It stays, inactive, with the names of secrets
and the environment in it
(https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deregister-task-definition-v2.html).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ecs.cluster_reading import cluster_exists, services

#: Inactive revisions of a family that stay, so that a person can compare the newest change.
KEPT_REVISIONS = 2
#: Most task definitions of one call (Amazon ECS API Reference, DeleteTaskDefinitions).
_AT_ONCE = 10


def old_revisions(account: Account, platform: str, *, tag: str) -> list[str]:
    """Return the ARNs of inactive revisions that no service uses, without the newest of each family.

    platform: Name of the platform: its families begin with it.
    tag: Key of the tag that its task definitions have. Families of a platform with a longer name have another
        value.
    """
    client = account.client("ecs")
    used = _used(account, platform)
    return [
        arn
        for family in _families(client, platform)
        for arn in sorted(set(_inactive(client, family)) - used, key=_revision)[:-KEPT_REVISIONS]
        if _is_ours(client, arn, platform, tag)
    ]


def delete_revisions(account: Account, arns: Sequence[str]) -> list[str]:
    """Delete revisions, and return the names of those that AWS accepted.

    A revision that tasks still have stays until they end, in the state ``DELETE_IN_PROGRESS``
    (Amazon ECS API Reference, DeleteTaskDefinitions).

    arns: The revisions.
    """
    deleted: list[str] = []
    for start in range(0, len(arns), _AT_ONCE):
        part = list(arns[start : start + _AT_ONCE])
        answer = account.client("ecs").delete_task_definitions(taskDefinitions=part)
        failed = {each["arn"] for each in answer.get("failures", [])}
        deleted += [arn.rsplit("/", 1)[-1] for arn in part if arn not in failed]
    return deleted


def _used(account: Account, platform: str) -> set[str]:
    if not cluster_exists(account, platform):
        return set()
    return {
        str(deployment["taskDefinition"])
        for service in services(account, platform)
        for deployment in service["deployments"]
    }


def _families(client: Any, platform: str) -> Iterator[str]:
    pages = client.get_paginator("list_task_definition_families")
    for page in pages.paginate(familyPrefix=f"{platform}-", status="ALL"):
        yield from page["families"]


def _inactive(client: Any, family: str) -> Iterator[str]:
    """Yield the inactive revisions of a family."""
    pages = client.get_paginator("list_task_definitions")
    for page in pages.paginate(familyPrefix=family, status="INACTIVE"):
        yield from page["taskDefinitionArns"]


def _revision(arn: str) -> int:
    return int(arn.rsplit(":", 1)[-1])


def _is_ours(client: Any, arn: str, platform: str, tag: str) -> bool:
    answer = client.describe_task_definition(taskDefinition=arn, include=["TAGS"])
    return {"key": tag, "value": platform} in answer.get("tags", [])
