"""The acts of a repair on a cluster on EKS: Kubernetes, Karpenter, and EC2 Auto Scaling."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpu_health.case_store import case_of
from gpu_health.cell_repairs import (
    CellRepairs,
    WorkerFigures,
    acting,
    group_of,
    has_spare_place,
    terminate_in_group,
)
from gpu_health.node_reading import (
    RESERVATION_LABEL,
    KubernetesObject,
    NodeObject,
    host_engines,
    is_running,
    is_stuck,
    ready_since,
    worker_pods,
)
from gpu_health.watched_node import WatchedNode, WatchedWorker
from inference_contracts.health_names import CORDON_ANNOTATION, OVERFLOW_POOL
from inference_contracts.metric_labels import RELEASE_LABEL_OF_PODS
from inference_decisions.repairs.live_node import (
    DcgmReading,
    LiveNode,
    NodeOwner,
    RepairActionError,
    Verification,
)
from inference_decisions.repairs.node_assessment import ENGINES_COUNT
from inference_decisions.repairs.repair_case import RepairCase
from operations.operations_errors import KubernetesError

_NODES: Final = "/api/v1/nodes"
_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
_NOT_FOUND, _CONFLICT, _TOO_MANY = 404, 409, 429


@dataclass(slots=True)
class ClusterRepairs(CellRepairs):
    """The acts on a cluster on EKS."""

    pods_together: dict[str, list[KubernetesObject]] = field(default_factory=dict)
    """Pods of nodes that were read in one list, where the DCGM engines among them count."""
    spare_together: dict[str, bool] = field(default_factory=dict)
    """Whether the reservations of these nodes have a place for another instance."""

    def read_live(self, node: str) -> LiveNode | None:
        """Read a node, the pods on it, its owner and its GPUs. None if it is gone."""
        with acting(f"read {node}"):
            began, found, pods = self._read(node)
            if found is None:
                return None
            owner, name = self._owner(found)
            figures = self.figures.get(node, WorkerFigures())
            return LiveNode(
                name=found.name,
                uid=found.uid,
                pool=found.pool,
                rack=found.rack,
                read_at=began,
                booted_at=self._booted_at(found),
                boot=found.boot,
                ready=found.ready,
                cordoned=found.cordoned,
                cordoned_by_us=found.cordoned and bool(found.mark),
                owner=owner,
                owner_name=name,
                instance=found.instance,
                purchase=found.purchase,
                spare=self._spare(found),
                gpus_expected=found.gpus_expected(self.platform.accelerators),
                gpus_allocatable=found.gpus_allocatable,
                conditions=found.conditions,
                dcgm=self._dcgm_on(node, pods),
                slower=figures.slower,
                failing=figures.failing,
                peers=figures.peers,
                serving_pods=sum(self._serves(pod) for pod in pods),
            )

    def cordon(self, case: RepairCase) -> None:
        """Close the node, with the case as its mark: the case can be read from it if the table is lost."""
        with acting(f"cordon {case.node}"):
            found = self.node(case.node)
            if found is None or found.uid != case.node_uid:
                raise RepairActionError(f"{case.node} is another node now")
            if found.cordoned and not found.mark:
                raise RepairActionError(f"somebody else cordoned {case.node}")
            marked = replace(case, state="cordoned", times={**case.times, "cordoned": self.clock()})
            self._change_node(case, unschedulable=True, mark=json.dumps(marked.as_dict(), sort_keys=True))
            self.together.pop(case.node, None)

    def uncordon(self, case: RepairCase) -> None:
        """Open the node again if the cordon is ours."""
        with acting(f"uncordon {case.node}"):
            found = self.node(case.node)
            if found is not None and found.uid == case.node_uid and found.mark:
                self._change_node(case, unschedulable=None, mark=None)

    def drain(self, case: RepairCase) -> None:
        """Ask for the eviction of each serving pod. Disruption budgets and the pods' own ends are kept.

        https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/: 429 means that a budget
        allows none now, so it is asked for again in a minute.
        """
        with acting(f"drain {case.node}"):
            for pod in self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={case.node}"):
                if self._serves(pod) and "deletionTimestamp" not in pod["metadata"]:
                    self._evict(pod)

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Ask the owner for another node, if this is still the one of the case.

        A group forgets an instance that it terminated before Kubernetes forgets the node.
        """
        if live.uid != case.node_uid:
            return
        with acting(f"replace {case.node}"):
            if live.owner == "node_claim":
                self._delete_claim(live)
            elif live.owner == "auto_scaling_group":
                terminate_in_group(live.instance)
            elif not case.owner_name:
                raise RepairActionError(f"nothing owns {case.node}")

    def verify(self, case: RepairCase) -> Verification:
        """Return whether a node that joined after the cordon runs a ready serving pod.

        A node that replaced that of another case does not count. Times are those of the API server, which
        are corrected by the difference of the clocks. Pods without a pool fit on any node, so the NodePool
        that takes them when the system nodes are full needs no other node.
        """
        if case.pool == OVERFLOW_POOL:
            return Verification(serving=True)
        with acting("look for a replacement"):
            taken = {each.replacement for each in self.store.cases(self.clock()) if each.replacement}
            since = case.times.get("cordoned", case.opened_at)
            for node in self.pool_nodes(case.pool):
                young = node.created_at > since and node.name not in taken and node.uid != case.node_uid
                if young and node.ready and not node.cordoned and self._serves_on(node):
                    return Verification(serving=True, replacement=node.name)
        return Verification(serving=False)

    # --- Reading. ---

    def _read(self, name: str) -> tuple[float, NodeObject | None, list[KubernetesObject]]:
        """Return when a node was read, its object, and its pods."""
        if name in self.together:
            at, found = self.together[name]
            return at, found if isinstance(found, NodeObject) else None, self.pods_together.get(name, [])
        began = self.clock()
        alone = self.node(name)
        selector = f"spec.nodeName={name}"
        pods = [] if alone is None else list(self._api.list("/api/v1/pods", fieldSelector=selector))
        return began, alone, pods

    def read_rest_together(self, cases: Sequence[RepairCase]) -> None:
        """Read the pods of all nodes if a decision counts the DCGM engines of one."""
        self.pods_together = {
            case.node: [] for case in cases if any(each.kind in ENGINES_COUNT for each in case.evidence)
        }
        for pod in self._api.list("/api/v1/pods") if self.pods_together else ():
            self.pods_together.get(pod["spec"].get("nodeName", ""), []).append(pod)

    @property
    def _api(self) -> Any:
        return self.platform.cell.kubernetes

    def node(self, name: str) -> NodeObject | None:
        """Return a node's object. None if there is none."""
        content = self._api.get(f"{_NODES}/{name}")
        return None if content is None else NodeObject(content, self._api.clock_skew_seconds)

    def nodes(self) -> list[NodeObject]:
        """Return all nodes of the cell."""
        contents = list(self._api.list(_NODES))
        return [NodeObject(content, self._api.clock_skew_seconds) for content in contents]

    def workers(self, nodes: Sequence[WatchedNode]) -> list[WatchedWorker]:
        """Return the workers that are ready, in the order of their names."""
        pods = self._api.list("/api/v1/pods", labelSelector=RELEASE_LABEL_OF_PODS)
        return worker_pods(pods, {node.name: node for node in nodes}, self._api.clock_skew_seconds)

    def marked_case(self, node: WatchedNode) -> RepairCase:
        """Return the case that the annotation of a node says."""
        try:
            return case_of(json.loads(node.mark))
        except (KeyError, TypeError) as error:
            raise ValueError(f"the mark of {node.name} is no case: {error!r}") from error

    def _serves_on(self, node: WatchedNode) -> bool:
        pods = self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node.name}")
        return any(self._serves(pod) and ready_since(pod) is not None for pod in pods)

    def _serves(self, pod: KubernetesObject) -> bool:
        if RELEASE_LABEL_OF_PODS not in pod["metadata"].get("labels", {}) or not is_running(pod):
            return False
        return not is_stuck(pod, self.clock() + self._api.clock_skew_seconds)

    def _booted_at(self, node: NodeObject) -> float:
        """Return when a node was booted: it joined then, or became ready again after another boot."""
        boot = self.boots.get(node.name, "")
        return node.created_at if boot in ("", node.boot) else node.ready_since

    def _owner(self, node: NodeObject) -> tuple[NodeOwner, str]:
        owner, name = node.owner
        if owner != "auto_scaling_group":
            return owner, name
        group = group_of(node.instance)
        return ("none", "") if group is None else (owner, str(group["AutoScalingGroupName"]))

    def _spare(self, node: NodeObject) -> bool:
        """Return whether the node's reservation has a place for another instance."""
        if node.purchase not in ("reservation", "capacity_block"):
            return True
        identifier = node.labels.get(RESERVATION_LABEL)
        if identifier is None:
            return False
        if node.name not in self.together:
            return has_spare_place(identifier)
        # Nodes that are read together are of few reservations.
        if identifier not in self.spare_together:
            self.spare_together[identifier] = has_spare_place(identifier)
        return self.spare_together[identifier]

    def _dcgm_on(self, node: str, pods: list[KubernetesObject]) -> DcgmReading | None:
        reading = self.dcgm(node)
        return None if reading is None else replace(reading, host_engines=host_engines(pods))

    # --- Acting. ---

    def _change_node(self, case: RepairCase, *, unschedulable: bool | None, mark: str | None) -> None:
        # The API server refuses the patch if the identifier differs.
        change = {
            "metadata": {"uid": case.node_uid, "annotations": {CORDON_ANNOTATION: mark}},
            "spec": {"unschedulable": unschedulable},
        }
        self._api.patch(f"{_NODES}/{case.node}", change)

    def _evict(self, pod: KubernetesObject) -> None:
        metadata = pod["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": metadata["uid"]}},
        }
        try:
            self._api.post(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction)
        except KubernetesError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT, _TOO_MANY):
                raise

    def _delete_claim(self, live: LiveNode) -> None:
        claim = self._api.get(f"{_CLAIMS}/{live.owner_name}")
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        if not str(claim.get("status", {}).get("providerID", "")).endswith(live.instance):
            raise RepairActionError(f"the NodeClaim {live.owner_name} has another instance now")
        self._api.delete(f"{_CLAIMS}/{live.owner_name}", uid=claim["metadata"]["uid"])
