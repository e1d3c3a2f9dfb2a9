"""Karpenter's real AWS provider turns pending pods into the pool's instance types, within its limits."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator

import pytest

import inference_catalog as catalog
from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog import node_facts
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster import matrix
from tests.cluster.karpenter import karpenter, named, pools_and_classes
from tests.cluster.objects import KubernetesObject, component_deployments, own_objects
from tests.cluster.simulated_ec2 import SimulatedEc2, simulated_ec2
from tests.cluster.state import has, in_namespace, named_pool, pods, ready_names, ready_pods
from tests.templates.support import Templates

pytestmark = pytest.mark.timeout(600)

#: Nobody here reserves capacity: moto does not know it.
_RESERVED = {name for name, pool in matrix.POOLS.items() if pool.is_reserved}
#: Pools for which Karpenter starts nothing here, as it never does at an unknown price.
_IDLE = _RESERVED | {
    name
    for name, pool in matrix.POOLS.items()
    if not set(pool.fields["instanceTypes"]) <= set(catalog.prices().usd_per_hour)
}

#: Nodes that are there whether pods need them or not, by their NodePool.
_KEPT = {
    f"{name}.kept": pool.nodes["min"]
    for name, pool in matrix.POOLS.items()
    if "min" in pool.nodes and name not in _RESERVED
}


@pytest.fixture(scope="module")
def ec2(control_plane: ControlPlane) -> Iterator[SimulatedEc2]:
    """What Karpenter, which runs, takes for AWS."""
    # It keeps a node for the pods it was made for, for twice the time of a batch at least.
    with simulated_ec2() as simulated, karpenter(control_plane, simulated, BATCH_MAX_DURATION="2s"):
        yield simulated


@pytest.fixture
def pools(
    kubectl: Kubectl, ec2: SimulatedEc2, matrix_platform: Templates
) -> Iterator[dict[str, KubernetesObject]]:
    """The NodePools of every kind of pool, ready, by name; they wait less long for an empty node."""
    objects = [each for each in pools_and_classes(matrix_platform, ec2) if _pool_name(each) not in _RESERVED]
    classes, found = named(objects, "EC2NodeClass"), named(objects, "NodePool")
    for each in found.values():
        if "disruption" in each["spec"]:
            each["spec"]["disruption"]["consolidateAfter"] = "2s"
    kubectl.apply(objects)
    kubectl.wait_until(lambda: ready_names(kubectl, "nodepools") >= set(found), "every NodePool is ready")
    yield found
    kubectl.run("delete", "nodepools", *found, "--wait=true", "--timeout=240s")
    kubectl.run("delete", "ec2nodeclasses", *classes, "--wait=true", "--timeout=240s")


def test_pods_become_nodes_of_their_pool_and_nodes_go_with_them(
    kubectl: Kubectl, namespace: str, pools: dict[str, KubernetesObject], matrix_platform: Templates
) -> None:
    deployments = [
        _small(each)
        for each in in_namespace(namespace, component_deployments(own_objects(matrix_platform)))
        if named_pool(each["spec"]["template"]) not in _IDLE
    ]
    # One worker more than a pool has room for.
    crowded = next(iter(matrix.POOLS))
    for each in deployments:
        if named_pool(each["spec"]["template"]) == crowded:
            each["spec"]["replicas"] = _max_workers(pools[crowded], crowded) + 1
    wanted = sum(each["spec"]["replicas"] for each in deployments)

    # Karpenter finds the image, the subnets and the security groups of each operating system.
    classes = kubectl.get("ec2nodeclasses")
    assert {each["spec"]["amiFamily"] for each in classes if has(each, "Ready")} == {"Bottlerocket", "AL2023"}

    kubectl.apply(deployments)
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == wanted - 1, "all but one pod run")

    nodes = {each["metadata"]["name"]: each["metadata"]["labels"] for each in kubectl.get("nodes")}
    for pod in pods(kubectl, namespace):
        if has(pod, "Ready"):
            labels = nodes[pod["spec"]["nodeName"]]
            assert labels.get(node_facts.POOL_LABEL, "") == named_pool(pod)
            assert labels["node.kubernetes.io/instance-type"] in _instance_types(
                pools[labels["karpenter.sh/nodepool"]]
            )
    count = Counter(labels["karpenter.sh/nodepool"] for labels in nodes.values())
    assert all(count[name] <= int(pool["spec"]["limits"]["nodes"]) for name, pool in pools.items())

    kubectl.run("delete", "deployments", "--all", "-n", namespace)
    kubectl.wait_until(lambda: _nodes_by_pool(kubectl) == _KEPT, "every node is gone but those that are kept")


def test_nodes_of_pools_do_not_expire_and_budgets_would_not_stop_that(
    kubectl: Kubectl, pools: dict[str, KubernetesObject]
) -> None:
    # The control: one of the shipped NodePools, with an age at which nodes end and no disruption allowed.
    control = copy.deepcopy(pools[next(iter(_KEPT))])
    control["metadata"] = {"name": "control.kept"}
    control["spec"]["template"]["spec"]["expireAfter"] = "15s"
    control["spec"]["disruption"]["budgets"] = [{"nodes": "0"}]
    kubectl.apply([control])
    try:
        there = {**_KEPT, "control.kept": control["spec"]["replicas"]}
        kubectl.wait_until(lambda: _nodes_by_pool(kubectl) == there, "every kept node is there")
        first = _claims(kubectl, "control.kept")
        shipped = {name: _claims(kubectl, name) for name in _KEPT}
        kubectl.wait_until(
            lambda: not first.keys() & _claims(kubectl, "control.kept").keys(), "nodes of the control expire"
        )
        assert {name: _claims(kubectl, name) for name in _KEPT} == shipped
        assert {age for claims in shipped.values() for age in claims.values()} == {"Never"}
    finally:
        kubectl.run("delete", "nodepools", "control.kept", "--wait=true", "--timeout=240s")


def _claims(kubectl: Kubectl, node_pool: str) -> dict[str, str]:
    """Return the age at which each node of a NodePool ends, by the name of its NodeClaim."""
    return {
        each["metadata"]["name"]: each["spec"]["expireAfter"]
        for each in kubectl.get("nodeclaims")
        if each["metadata"]["labels"]["karpenter.sh/nodepool"] == node_pool
    }


def _nodes_by_pool(kubectl: Kubectl) -> Counter[str]:
    """Count Karpenter's nodes per NodePool."""
    return Counter(each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in kubectl.get("nodeclaims"))


def _small(deployment: KubernetesObject) -> KubernetesObject:
    """Copy a deployment with a worker more than kept nodes hold; all where sizes share nodes."""
    small = copy.deepcopy(deployment)
    (container,) = small["spec"]["template"]["spec"]["containers"]
    # Karpenter's test program gives every node the disk of an instance without local disks.
    del container["resources"]["requests"]["ephemeral-storage"]
    pool = matrix.POOLS.get(named_pool(small["spec"]["template"]))
    if pool and len(pool.workers) == 1:
        small["spec"]["replicas"] = 1 + pool.nodes.get("min", 0)
    return small


def _pool_name(kubernetes_object: KubernetesObject) -> str:
    """Name of a NodePool's or node class's pool; kept nodes have a NodePool of their own."""
    return str(kubernetes_object["metadata"]["name"]).removesuffix(".kept")


def _max_workers(pool: KubernetesObject, name: str) -> int:
    accelerators = int(pool["spec"]["limits"]["nvidia.com/gpu"])
    (size,) = matrix.POOLS[name].workers
    return accelerators // size


def _instance_types(pool: KubernetesObject) -> list[str]:
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    (types,) = [each["values"] for each in requirements if each["key"] == "node.kubernetes.io/instance-type"]
    return list(types)
