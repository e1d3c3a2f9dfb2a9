"""What ECS refuses about capacity providers. A stand-in that accepts it hides a failed deployment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from inference_local.emulator.ecs.api.capacity_providers import (
    CapacityProviders,
    demand_forced,
    demand_network,
)
from inference_local.emulator.refusals import AwsApiError

MANAGED = {
    "name": "managed",
    "cluster": "arn:aws:ecs:us-west-2:1:cluster/try",
    "managedInstancesProvider": {"x": 1},
}
GROUP = {"name": "group", "autoScalingGroupProvider": {"autoScalingGroupArn": "arn:group"}}


@pytest.fixture
def used() -> set[str]:
    return set()


@pytest.fixture
def providers(used: set[str]) -> CapacityProviders:
    found = CapacityProviders(lambda cluster: used if cluster == "try" else ())
    found.create(MANAGED)
    found.create(GROUP)
    found.associate("try", ["FARGATE", "group"])
    return found


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda it: it.associate("try", ["group", "managed"]), "Cannot associate Managed Instances"),
        (lambda it: it.associate("try", ["group", "absent"]), "absent was not found"),
        (lambda it: it.associate("try", ["FARGATE"]), "in use and cannot be removed"),
        (lambda it: it.delete("managed"), "in use and cannot be removed"),
        (lambda it: it.delete("group"), "associated with cluster: try"),
        (lambda it: it.create({**MANAGED, "managedInstancesProvider": {"x": 2}}), "already exists"),
        (lambda it: it.create({**GROUP, "name": "other"}), "already being used"),
        (lambda it: it.create({**GROUP, "name": "awsome"}), "cannot start with"),
        (lambda it: it.demand("try", [{"capacityProvider": "FARGATE_SPOT"}]), "not associated"),
        (lambda it: it.demand_single([{"capacityProvider": each} for each in ("managed", "x")]), "multiple"),
        (lambda it: it.demand("other", [{"capacityProvider": "managed"}]), "not associated"),
    ],
)
def test_it_refuses_what_ecs_refuses(
    providers: CapacityProviders, used: set[str], call: Callable[[CapacityProviders], object], words: str
) -> None:
    used |= {"managed", "group"}
    with pytest.raises(AwsApiError, match=words):
        call(providers)


def test_a_list_without_managed_instances_leaves_them_usable(
    providers: CapacityProviders, used: set[str]
) -> None:
    """AWS CDK lists the other providers alone too (Cluster.addManagedInstancesCapacityProvider)."""
    used |= {"managed"}
    providers.associate("try", ["FARGATE"])
    providers.demand("try", [{"capacityProvider": "managed"}, {"capacityProvider": "FARGATE"}])


@pytest.mark.parametrize(
    ("key", "template", "starts"),
    [
        ("team/owner", {}, False),
        ("Cost Center", {"instanceMetadataTagsPropagation": True}, False),
        ("_index", {}, False),
        ("team:owner", {}, True),
        ("team/owner", {"instanceMetadataTagsPropagation": False}, True),
    ],
)
def test_hosts_whose_metadata_cannot_have_a_tag_never_start(
    providers: CapacityProviders, key: str, template: dict[str, bool], *, starts: bool
) -> None:
    """Red if a platform with such a tag is complete here, and waits for hosts forever on AWS."""
    managed = {"propagateTags": "CAPACITY_PROVIDER", "instanceLaunchTemplate": template}
    tags = [{"key": key, "value": "x"}]
    providers.create({**MANAGED, "name": "tagged", "managedInstancesProvider": managed, "tags": tags})
    refused = pytest.raises(AwsApiError, match=f"'{key}' is not a valid tag key")
    with nullcontext() if starts else refused:
        providers.demand("try", [{"capacityProvider": "tagged"}])


def test_a_provider_that_nothing_uses_goes_and_its_name_is_free(providers: CapacityProviders) -> None:
    providers.associate("try", ["FARGATE"])
    for request in (GROUP, MANAGED):
        providers.delete(str(request["name"]))
        providers.create(request)


def test_a_changed_strategy_needs_a_new_deployment() -> None:
    before = [{"capacityProvider": "a", "weight": 1}]
    demand_forced(before, [{"capacityProvider": "a", "base": 0, "weight": 1}], forced=False)
    demand_forced(before, [{"capacityProvider": "b", "weight": 1}], forced=True)
    with pytest.raises(AwsApiError, match="you must force a new deployment"):
        demand_forced(before, [{"capacityProvider": "b", "weight": 1}], forced=False)


def test_a_network_configuration_is_for_tasks_with_their_own_network() -> None:
    """An update has what the service had, so a change of the network mode needs another service."""
    request = {"networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}}
    demand_network(request, {"networkMode": "awsvpc"})
    demand_network({}, {"networkMode": "host"})
    with pytest.raises(AwsApiError, match="not valid for the given networkMode"):
        demand_network(request, {"networkMode": "host"})
