"""The objects of the stand-in for the Kubernetes API server, and what requests change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from inference_contracts.health_names import CORDON_ANNOTATION
from inference_contracts.metric_labels import (
    POOL_LABEL_OF_PODS,
    RELEASE_LABEL_OF_PODS,
    ROLE_LABEL_OF_PODS,
)
from inference_local.controllers.run_clock import RunClock, kubernetes_time
from inference_local.controllers.worker_nodes import WorkerNode, WorkerNodes

KubernetesContent = dict[str, Any]
#: Status and content of an answer.
Answer = tuple[int, KubernetesContent]
_NAMESPACE = "inference"


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """Nodes, pods, NodeClaims, ScaledObjects, autoscalers and ClusterQueues.

    Nodes, pods and NodeClaims are shown as they are now. The others are those that the charts rendered.
    """

    nodes: Sequence[WorkerNodes]
    """Nodes and pods of each elastic role."""
    clock: RunClock
    """The clock of GPU health, by which all times are shown."""
    node_types: Mapping[str, str]
    """Instance type of the nodes of each pool."""
    scaled_objects: Mapping[str, KubernetesContent]
    queues: Mapping[str, KubernetesContent]
    """`scaled_objects`, `queues`: Rendered ScaledObjects and ClusterQueues by name."""

    def answer(self, method: str, path: str, query: Mapping[str, str], content: Any) -> Answer:
        """Answer a request.

        method, path, query: The request line. The query has a value per name.
        content: The body.
        """
        parts = path.strip("/").split("/")
        if parts[-1] == "eviction" and method == "POST":
            return self._evict(parts[-2])
        collections: Mapping[str, Callable[[], Iterator[KubernetesContent]]] = {
            "nodes": self._all_nodes,
            "pods": self._pods,
            "nodeclaims": self._claims,
            "scaledobjects": lambda: iter(self.scaled_objects.values()),
            "horizontalpodautoscalers": self._autoscalers,
        }
        if parts[-1] in collections and method == "GET":
            found = [each for each in collections[parts[-1]]() if _selected(each, query)]
            return HTTPStatus.OK, {"metadata": {}, "items": found}
        kind, name = parts[-2], parts[-1]
        if kind in ("nodes", "pods", "nodeclaims"):
            return self._one(method, kind, name, content)
        return self._rendered(method, kind, name, content)

    def floor(self, name: str) -> int:
        """Return the floor of a ScaledObject."""
        return int(self.scaled_objects[name]["spec"]["minReplicaCount"])

    def _one(self, method: str, kind: str, name: str, content: Any) -> Answer:
        show = {"nodes": self._node, "pods": self._pod, "nodeclaims": self._claim}[kind]
        for role, node in self._joined():
            shown = show(role, node)
            if shown["metadata"]["name"] != name:
                continue
            if method == "PATCH" and kind == "nodes":
                if content["metadata"].get("uid", shown["metadata"]["uid"]) != shown["metadata"]["uid"]:
                    return HTTPStatus.CONFLICT, {"message": f"{name} is another object"}
                with role.lock:
                    node.cordoned = bool(content["spec"]["unschedulable"])
                    node.mark = content["metadata"]["annotations"][CORDON_ANNOTATION] or ""
            elif method == "DELETE" and kind == "nodeclaims":
                if content["preconditions"]["uid"] != shown["metadata"]["uid"]:
                    return HTTPStatus.CONFLICT, {"message": f"{name} is another object"}
                node.claim_deleted = True
            elif method != "GET":
                return HTTPStatus.METHOD_NOT_ALLOWED, {
                    "message": f"{method} {kind} is not part of the stand-in"
                }
            return HTTPStatus.OK, show(role, node)
        return HTTPStatus.NOT_FOUND, {"message": f"{kind} {name} not found"}

    def _rendered(self, method: str, kind: str, name: str, content: Any) -> Answer:
        found = {"scaledobjects": self.scaled_objects, "clusterqueues": self.queues}.get(kind, {}).get(name)
        if found is None:
            return HTTPStatus.NOT_FOUND, {"message": f"{kind} {name} not found"}
        if method == "PATCH":
            version = content.get("metadata", {}).get("resourceVersion")
            if version is not None and version != found["metadata"]["resourceVersion"]:
                return HTTPStatus.CONFLICT, {"message": f"{name} was changed"}
            found["spec"].update(copy.deepcopy(content["spec"]))
            found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)
        return HTTPStatus.OK, found

    def _evict(self, name: str) -> Answer:
        for role, node in self._joined():
            if node.has_pod and role.pod_name(node) == name:
                node.evicted = True
                return HTTPStatus.CREATED, {"status": "Success"}
        return HTTPStatus.NOT_FOUND, {"message": f"pod {name} not found"}

    # --- What they look like. ---

    def _joined(self) -> Iterator[tuple[WorkerNodes, WorkerNode]]:
        for role in self.nodes:
            for node in role:
                yield role, node

    def _all_nodes(self) -> Iterator[KubernetesContent]:
        return (self._node(role, node) for role, node in self._joined())

    def _pods(self) -> Iterator[KubernetesContent]:
        return (self._pod(role, node) for role, node in self._joined() if node.has_pod)

    def _claims(self) -> Iterator[KubernetesContent]:
        return (self._claim(role, node) for role, node in self._joined())

    def _autoscalers(self) -> Iterator[KubernetesContent]:
        for each in self.nodes:
            yield {
                "metadata": {"name": f"keda-hpa-{each.role.name}"},
                "status": {"currentReplicas": each.serving, "desiredReplicas": each.wanted},
            }

    def _node(self, role: WorkerNodes, node: WorkerNode) -> KubernetesContent:
        name, pool = role.name(node), str(role.role.workers.planned.pool)
        joined = kubernetes_time(self.clock.of(node.joined_at or 0.0))
        unschedulable = {"unschedulable": True} if node.cordoned else {}
        return {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "creationTimestamp": joined,
                "labels": {
                    "karpenter.sh/nodepool": pool,
                    "karpenter.sh/capacity-type": "on-demand",
                    "karpenter.k8s.aws/instance-gpu-count": str(role.role.accelerators),
                    "node.kubernetes.io/instance-type": self.node_types[pool],
                },
                "annotations": {CORDON_ANNOTATION: node.mark} if node.mark else {},
                "ownerReferences": [{"kind": "NodeClaim", "name": f"claim-{name}"}],
            },
            "spec": {"providerID": f"aws:///local/i-{name}", **unschedulable},
            "status": {
                "nodeInfo": {"bootID": f"boot-{name}"},
                "allocatable": {"nvidia.com/gpu": str(role.role.accelerators)},
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": joined, "reason": ""}
                ],
            },
        }

    def _pod(self, role: WorkerNodes, node: WorkerNode) -> KubernetesContent:
        name, ready = role.pod_name(node), node.ready_at if node.serves else None
        condition = {
            "type": "Ready",
            "status": "False" if ready is None else "True",
            "lastTransitionTime": kubernetes_time(self.clock.of(ready or node.joined_at or 0.0)),
        }
        leaving = {"deletionTimestamp": condition["lastTransitionTime"]} if node.leaving else {}
        return {
            "metadata": {
                "name": name,
                "namespace": _NAMESPACE,
                "uid": f"uid-{name}",
                "labels": {
                    RELEASE_LABEL_OF_PODS: role.role.deployment.plan.release,
                    ROLE_LABEL_OF_PODS: role.role.workers.role,
                    POOL_LABEL_OF_PODS: str(role.role.workers.planned.pool),
                    "pod-template-hash": "first",
                },
                **leaving,
            },
            "spec": {"nodeName": role.name(node), "containers": [{"name": "engine", "image": "simulated"}]},
            "status": {"phase": "Running", "conditions": [condition]},
        }

    def _claim(self, role: WorkerNodes, node: WorkerNode) -> KubernetesContent:
        name = role.name(node)
        deleted = {"deletionTimestamp": kubernetes_time(self.clock.began)} if node.claim_deleted else {}
        return {
            "metadata": {"name": f"claim-{name}", "uid": f"uid-claim-{name}", **deleted},
            "status": {"providerID": f"aws:///local/i-{name}"},
        }


def _selected(each: KubernetesContent, query: Mapping[str, str]) -> bool:
    """Return whether an object has the wanted field and label."""
    node = query.get("fieldSelector", "").removeprefix("spec.nodeName=")
    if node and each["spec"].get("nodeName") != node:
        return False
    label = query.get("labelSelector", "")
    return not label or label in each["metadata"].get("labels", {})
