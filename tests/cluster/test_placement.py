"""The real scheduler puts the pods of a model on the pool that its blueprint names, and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from inference_blueprints import catalog
from inference_blueprints.catalog import placement
from inference_blueprints.deployment.kubectl import Kubectl
from tests.cluster.nodes import node, nodes_of
from tests.cluster.objects import KubernetesObject, component_deployments, model_objects
from tests.cluster.state import in_namespace, named_pool, pods, ready_names, ready_pods
from tests.templates.support import Templates

SYSTEM_NODES = 2


@pytest.fixture
def nodes(kubectl: Kubectl, platform_manifests: list[KubernetesObject]) -> Iterator[dict[str, str]]:
    """Full pools, the routers' pool and system nodes; pool by node, nothing for nodes without one."""
    made = [
        node(f"system-{number}", catalog.instance_type("m7i.xlarge"), labels={}, taints=[])
        for number in range(SYSTEM_NODES)
    ]
    for pool in platform_manifests:
        if pool["kind"] == "NodePool":
            made += nodes_of(pool, int(pool["spec"]["limits"]["nodes"]))
    kubectl.apply(made)
    names = [each["metadata"]["name"] for each in made]
    kubectl.wait_until(lambda: ready_names(kubectl, "nodes") >= set(names), "nodes are ready")
    yield {
        each["metadata"]["name"]: each["metadata"]["labels"].get(placement.POOL_LABEL, "") for each in made
    }
    kubectl.run("delete", "nodes", *names, "--ignore-not-found", "--wait=false")


def test_every_pod_runs_on_its_pool(
    kubectl: Kubectl, namespace: str, nodes: dict[str, str], platform: Templates
) -> None:
    deployments = in_namespace(namespace, component_deployments(model_objects(platform)))
    wanted = sum(each["spec"]["replicas"] for each in deployments)

    kubectl.apply(deployments)
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == wanted, "every pod runs")

    placed = Counter((nodes[pod["spec"]["nodeName"]], named_pool(pod)) for pod in pods(kubectl, namespace))
    assert placed.total() == wanted
    assert all(found == named for found, named in placed), placed


def test_without_its_pool_a_worker_waits(
    kubectl: Kubectl, namespace: str, nodes: dict[str, str], platform: Templates
) -> None:
    workers = [
        each
        for each in component_deployments(model_objects(platform))
        if each["metadata"]["name"].endswith("-worker")
    ]
    named = {named_pool(each["spec"]["template"]) for each in workers}
    lost = sorted(name for name, pool in nodes.items() if pool in named)
    kubectl.run("delete", "nodes", *lost)

    kubectl.apply(in_namespace(namespace, workers))

    def all_refused() -> bool:
        conditions = [
            each for pod in pods(kubectl, namespace) for each in pod["status"].get("conditions", [])
        ]
        refused = [each for each in conditions if each.get("reason") == "Unschedulable"]
        return len(refused) == sum(each["spec"]["replicas"] for each in workers)

    kubectl.wait_until(all_refused, "the scheduler finds no node for any worker")


def test_a_foreign_pod_stays_off_accelerators(
    kubectl: Kubectl, namespace: str, nodes: dict[str, str]
) -> None:
    plain = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "plain"},
        "spec": {
            "replicas": len(nodes),
            "selector": {"matchLabels": {"app": "plain"}},
            "template": {
                "metadata": {"labels": {"app": "plain"}},
                "spec": {"containers": [{"name": "main", "image": "pause"}]},
            },
        },
    }

    kubectl.apply(in_namespace(namespace, [plain]))
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == len(nodes), "every pod runs")

    used = {pod["spec"]["nodeName"] for pod in pods(kubectl, namespace)}
    assert {nodes[name] for name in used} == {""}
