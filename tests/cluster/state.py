"""What a cluster holds, as tests ask for it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog import node_facts
from tests.cluster.objects import KubernetesObject


def namespace_object(name: str) -> KubernetesObject:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def in_namespace(namespace: str, objects: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """The objects in another namespace; the originals stay as they are."""
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in objects]


def renamed(pool: str, name: str, objects: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """Copies of nodes or pods whose pool has another name, wherever a value is that name."""
    found: list[KubernetesObject] = json.loads(json.dumps(objects).replace(f'"{pool}"', f'"{name}"'))
    return found


def pods(kubectl: Kubectl, namespace: str) -> list[KubernetesObject]:
    """The pods of a namespace that are not about to go."""
    found = kubectl.get("pods", "--namespace", namespace)
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def has(kubernetes_object: KubernetesObject, condition: str, status: str = "True") -> bool:
    """Whether a condition of an object is true, or has another status."""
    conditions = kubernetes_object.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == (condition, status) for each in conditions)


def ready_names(kubectl: Kubectl, kind: str) -> set[str]:
    """Names of the ready objects of a kind."""
    return {each["metadata"]["name"] for each in kubectl.get(kind) if has(each, "Ready")}


def usable_nodes(kubectl: Kubectl) -> set[str]:
    """Names of the ready nodes; one of which Kubernetes has not taken its first taint yet gets no pods."""
    return {
        node["metadata"]["name"]
        for node in kubectl.get("nodes")
        if has(node, "Ready")
        and not any(
            taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints", [])
        )
    }


def ready_pods(kubectl: Kubectl, namespace: str) -> int:
    """How many pods of a namespace are ready."""
    return sum(has(pod, "Ready") for pod in pods(kubectl, namespace))


def named_pool(pod: KubernetesObject) -> str:
    """The pool that a pod's affinity names, nothing when it asks for a node without one."""
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    ((pool,),) = [
        expression.get("values", [""])
        for term in required["nodeSelectorTerms"]
        for expression in term["matchExpressions"]
        if expression["key"] == node_facts.POOL_LABEL
    ]
    return str(pool)
