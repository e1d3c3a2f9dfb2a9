"""Addresses for nodes: the arithmetic by hand, and the rule on it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_catalog.addresses import addresses_for_nodes, node_addresses
from inference_contracts.errors import BlueprintError

_MESSAGE = "the network has too few addresses"


def _errors(change: dict[str, Any], maximum: int, **pool: Any) -> list[str]:
    document = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8"))
    document["spec"].update(change)
    document["spec"]["pools"][0].update(nodes={"max": maximum}, **pool)
    try:
        parse_blueprint(yaml.safe_dump(document), "it.yaml")
    except BlueprintError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("serving_pods", "pods", "prefixes", "total"),
    [
        # 1 + 8 of daemons = 9 pods: 1 prefix, 1 warm; 1 + 2 * 16 = 33.
        (1, 9, 2, 33),
        # 8 + 8 = 16 pods fill 1 prefix, 1 warm; 33.
        (8, 16, 2, 33),
        # 16 + 8 = 24 pods: 2 prefixes, 1 warm; 1 + 3 * 16 = 49.
        (16, 24, 3, 49),
        # kubelet takes 110: 7 prefixes hold 112, so none is kept warm; 1 + 7 * 16 = 113.
        (200, 110, 7, 113),
    ],
)
def test_addresses_of_a_node(serving_pods: int, pods: int, prefixes: int, total: int) -> None:
    node = node_addresses(serving_pods)
    assert (node.pods, node.prefixes, node.total) == (pods, prefixes, total)


@pytest.mark.parametrize(
    ("cidr", "zones", "left"),
    [
        # /16 among 3 zones: /18 = 16,384 - 5 AWS - 16 control plane - 8 load balancer - 10 endpoints.
        ("10.0.0.0/16", 3, 16_345),
        # /20 among 4 zones: /23 = 512 - 39.
        ("10.0.0.0/20", 4, 473),
        # /20 among 2 zones: /22 = 1,024 - 39.
        ("10.0.0.0/20", 2, 985),
    ],
)
def test_addresses_left_in_a_subnet(cidr: str, zones: int, left: int) -> None:
    endpoints = sum(endpoint.kind == "interface" for endpoint in catalog.endpoints().values())
    assert addresses_for_nodes(cidr, zones, endpoints=endpoints) == left


# /20 among 3 zones: /22, 3 * 985 = 2,955. The platform's own nodes, 3 and 20 of 16 pods: 23 * 33 = 759.
# 2,955 - 759 = 2,196, at 33 a node 66 nodes and 18 addresses.
def test_the_last_node_that_fits() -> None:
    network = {"network": {"cidr": "10.0.0.0/20"}}
    assert _errors(network, 66) == []
    (error,) = _errors(network, 67)
    assert "it.yaml:" in error
    assert "spec.pools[0].nodes.max" in error
    assert _MESSAGE in error
    assert "lower it to 66" in error


# One of the three /22: 985 addresses, at 33 a node 29 nodes.
def test_a_pool_in_one_zone_has_one_subnet() -> None:
    network = {"network": {"cidr": "10.0.0.0/20"}}
    assert _errors(network, 29, availabilityZone="us-west-2b") == []
    (error,) = _errors(network, 30, availabilityZone="us-west-2b")
    assert "the subnet of us-west-2b leaves 985; lower it to 29" in error


def test_an_existing_vpc_is_bounded_by_its_range() -> None:
    existing = {
        "environment": {"region": "us-west-2", "availabilityZones": ["us-west-2a", "us-west-2b"]},
        "network": {
            "existing": {
                "vpcId": "vpc-0a1b2c3d",
                "vpcCidr": "10.0.0.0/22",
                "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"],
            }
        },
    }
    # 1,024 - 2 * 5 = 1,014; less 759 are 255, at 33 a node 7 nodes.
    assert _errors(existing, 7) == []
    (error,) = _errors(existing, 8)
    assert "lower it to 7" in error


def test_an_invalid_range_is_reported_once() -> None:
    assert [_MESSAGE in error for error in _errors({"network": {"cidr": "10.0.0.1/16"}}, 5000)] == [False]


def test_hosts_of_ecs_have_an_address_each_and_one_per_task() -> None:
    """Prefixes of Kubernetes and its system nodes, which ECS does not have, turn this red."""
    change = {"cluster": {"ecs": {"managedInstances": "never"}}, "network": {"cidr": "10.0.0.0/20"}}
    [message] = _errors(change, 5000)
    # A host of one device: its address, and that of its task.
    assert "5000 * 2 + 0 for other nodes = 10000" in message
    assert _errors(change, 300) == []
