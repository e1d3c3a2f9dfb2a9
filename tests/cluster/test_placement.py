"""The real scheduler puts the pods of a model on the pool that its blueprint names, and nowhere else.

The workers of all blueprints are on one cluster at once, each blueprint's pools with its name before theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

import inference_catalog as catalog
from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog import node_facts
from tests.cluster.nodes import node, nodes_of
from tests.cluster.objects import KubernetesObject, component_deployments, manifests, own_objects
from tests.cluster.state import (
    has,
    in_namespace,
    named_pool,
    namespace_object,
    pods,
    ready_names,
    ready_pods,
    renamed,
)
from tests.templates.support import Templates

_SYSTEM_NODES = 2
#: Of pods that belong to nobody, and of workers whose pool has no node.
_FOREIGN, _LOST = "foreign", "lost"


@dataclass(frozen=True)
class Cluster:
    """Where pods are."""

    pool_by_node: Mapping[str, str]
    """Nothing for nodes without one."""
    workloads: Mapping[str, list[KubernetesObject]]
    """Deployments by their namespace: those of each blueprint in one of its own."""

    def wanted(self, namespace: str) -> int:
        """How many pods there are to be."""
        return sum(each["spec"]["replicas"] for each in self.workloads[namespace])


@pytest.fixture(scope="module")
def cluster(kubectl: Kubectl, platforms: dict[str, Templates]) -> Iterator[Cluster]:
    """Full pools of every blueprint, system nodes, and all that is to run on them."""
    nodes = [
        node(f"system-{number}", catalog.instance_type("m7i.24xlarge"), labels={}, taints=[])
        for number in range(_SYSTEM_NODES)
    ]
    for name, templates in platforms.items():
        nodes += _nodes(name, templates)
    workloads = {
        _namespace(name): _workers_and_frontends(name, templates) for name, templates in platforms.items()
    }
    workloads[_FOREIGN] = [_plain_deployment(len(nodes))]
    workloads[_LOST] = [
        worker
        for each in workloads[_namespace("quickstart-g6e")]
        if (pool := named_pool(each["spec"]["template"]))
        for worker in renamed(pool, "nobody", [each])
    ]
    classes = {
        each["metadata"]["name"]: each
        for templates in platforms.values()
        for each in manifests(templates)
        if each["kind"] == "PriorityClass"
    }
    kubectl.apply([*nodes, *classes.values(), *map(namespace_object, workloads)])
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in nodes}
    kubectl.wait_until(lambda: ready_names(kubectl, "nodes") >= set(labels), "nodes are ready")
    kubectl.apply([each for name, objects in workloads.items() for each in in_namespace(name, objects)])
    yield Cluster(
        {
            each["metadata"]["name"]: each["metadata"]["labels"].get(node_facts.POOL_LABEL, "")
            for each in nodes
        },
        workloads,
    )
    kubectl.run("delete", "namespaces", *workloads, "--wait=false")
    kubectl.run("delete", "nodes", *labels, "--wait=false")
    kubectl.run("delete", "priorityclasses", *classes)


def test_every_pod_runs_on_its_pool(
    kubectl: Kubectl, cluster: Cluster, platforms: dict[str, Templates]
) -> None:
    for namespace in map(_namespace, platforms):
        wanted = cluster.wanted(namespace)

        def all_run(namespace: str = namespace, wanted: int = wanted) -> bool:
            return ready_pods(kubectl, namespace) == wanted

        kubectl.wait_until(all_run, f"every pod of {namespace} runs")

        placed = Counter(
            (cluster.pool_by_node[pod["spec"]["nodeName"]], named_pool(pod))
            for pod in pods(kubectl, namespace)
        )

        assert placed.total() == wanted
        assert all(found == named for found, named in placed), placed


def test_without_its_pool_a_worker_waits(kubectl: Kubectl, cluster: Cluster) -> None:
    wanted = cluster.wanted(_LOST)

    def all_refused() -> bool:
        return sum(has(pod, "PodScheduled", "False") for pod in pods(kubectl, _LOST)) == wanted

    assert wanted > 0
    kubectl.wait_until(all_refused, "the scheduler finds no node for any worker")


def test_a_foreign_pod_stays_off_accelerators(kubectl: Kubectl, cluster: Cluster) -> None:
    wanted = cluster.wanted(_FOREIGN)
    kubectl.wait_until(lambda: ready_pods(kubectl, _FOREIGN) == wanted, "every pod runs")

    used = {pod["spec"]["nodeName"] for pod in pods(kubectl, _FOREIGN)}

    assert {cluster.pool_by_node[name] for name in used} == {""}


def _namespace(platform: str) -> str:
    """Return a namespace that no platform has: that of the front door is called as a blueprint."""
    return f"pods-of-{platform}"


def _nodes(platform: str, templates: Templates) -> list[KubernetesObject]:
    """As many nodes as the pools of a platform may have, and one of those for pods without a pool."""
    found = []
    for each in manifests(templates):
        if each["kind"] == "NodePool":
            pool = each["spec"]["template"]["metadata"].get("labels", {}).get(node_facts.POOL_LABEL)
            count = int(each["spec"]["limits"]["nodes"]) if pool else 1
            nodes = nodes_of(each, count, prefix=f"{platform}.")
            found += renamed(pool, f"{platform}.{pool}", nodes) if pool else nodes
    return found


def _workers_and_frontends(platform: str, templates: Templates) -> list[KubernetesObject]:
    return [
        placed
        for each in map(_by_the_default_scheduler, component_deployments(own_objects(templates)))
        for pool in [named_pool(each["spec"]["template"])]
        for placed in (renamed(pool, f"{platform}.{pool}", [each]) if pool else [each])
    ]


def _by_the_default_scheduler(deployment: KubernetesObject) -> KubernetesObject:
    """Leave out AWS's scheduler for Neuron, which does not run here.

    It is a kube-scheduler that asks an extension in addition, so what keeps a pod off a node here does there.
    """
    deployment["spec"]["template"]["spec"].pop("schedulerName", None)
    return deployment


def _plain_deployment(replicas: int) -> KubernetesObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "plain"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "plain"}},
            "template": {
                "metadata": {"labels": {"app": "plain"}},
                "spec": {"containers": [{"name": "main", "image": "pause"}]},
            },
        },
    }
