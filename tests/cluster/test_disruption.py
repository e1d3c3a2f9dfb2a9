"""A drain asks the models' PodDisruptionBudgets, and always comes to an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from inference_blueprints.operate.kubernetes import Kubectl, KubectlFailed
from tests.cluster import matrix
from tests.cluster.nodes import nodes_of
from tests.cluster.objects import KubernetesObject, component_deployments, manifests, own_objects
from tests.cluster.state import in_namespace, named_pool, pods, ready_pods
from tests.templates.support import Templates

#: What the Dynamo operator reads on a pod template, and the budget allows too.
_MAX_UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"


@pytest.fixture(params=["quickstart-g6e", matrix.NAME])
def worker(
    request: pytest.FixtureRequest,
    kubectl: Kubectl,
    namespace: str,
    synthesise: Callable[[str], Templates],
) -> Iterator[KubernetesObject]:
    """The workers of one model on a full pool, each node of which holds one, with their budget."""
    platform = synthesise(request.param)
    objects = own_objects(platform)
    deployment = next(
        each for each in component_deployments(objects) if each["metadata"]["name"].endswith("-worker")
    )
    budget = next(
        each
        for each in objects
        if each["kind"] == "PodDisruptionBudget"
        and each["metadata"]["name"] == deployment["metadata"]["name"]
    )
    pools = [each for each in manifests(platform) if each["kind"] == "NodePool"]
    named = named_pool(deployment["spec"]["template"])
    pool = next(each for each in pools if each["metadata"]["name"] == named)
    nodes = nodes_of(pool, deployment["spec"]["replicas"])
    kubectl.apply(nodes)
    kubectl.apply(in_namespace(namespace, [deployment, budget]))
    kubectl.wait_until(
        lambda: ready_pods(kubectl, namespace) == deployment["spec"]["replicas"], "every worker is ready"
    )
    yield deployment
    kubectl.run("delete", "nodes", *(each["metadata"]["name"] for each in nodes))


def test_one_worker_may_go_and_the_next_waits(
    kubectl: Kubectl, namespace: str, worker: KubernetesObject
) -> None:
    # No node takes the replacement, not even one that had no worker.
    kubectl.run("cordon", *(node["metadata"]["name"] for node in kubectl.get("nodes")))
    names = [pod["metadata"]["name"] for pod in pods(kubectl, namespace)]
    allowed = int(worker["spec"]["template"]["metadata"]["annotations"][_MAX_UNAVAILABLE])
    assert 0 < allowed < len(names)
    kubectl.wait_until(
        lambda: _budget(kubectl, namespace)["disruptionsAllowed"] == allowed, "the budget is counted"
    )

    for name in names[:allowed]:
        _evict(kubectl, namespace, name)

    with pytest.raises(
        KubectlFailed, match="Cannot evict pod as it would violate the pod's disruption budget"
    ):
        _evict(kubectl, namespace, names[allowed])


def test_a_drain_of_every_node_in_turn_ends(
    kubectl: Kubectl, namespace: str, worker: KubernetesObject
) -> None:
    nodes = sorted({pod["spec"]["nodeName"] for pod in pods(kubectl, namespace)})
    replicas = worker["spec"]["replicas"]

    for name in nodes:
        kubectl.run(
            "drain",
            name,
            "--delete-emptydir-data",
            "--ignore-daemonsets",
            "--timeout=240s",
            "--grace-period=1",
        )
        # What stands in for the drained node: here the node itself, given back.
        kubectl.run("uncordon", name)
        kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == replicas, "workers are back")


def _evict(kubectl: Kubectl, namespace: str, pod: str) -> None:
    kubectl.run(
        *("create", "--raw", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", "--filename", "-"),
        document={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        },
    )


def _budget(kubectl: Kubectl, namespace: str) -> dict[str, int]:
    (budget,) = kubectl.get("poddisruptionbudgets", "-n", namespace)
    status: dict[str, int] = budget["status"]
    return status
