"""What Kubernetes says about nodes and the pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gpu_health.watched_node import WatchedNode, WatchedWorker
from inference_contracts.health_names import CORDON_ANNOTATION, RACK_LABEL
from inference_contracts.metric_labels import (
    POOL_LABEL_OF_PODS,
    RELEASE_LABEL_OF_PODS,
    ROLE_LABEL_OF_PODS,
    WORKER_ROLES,
)
from inference_decisions.repairs.fault_rules import HardwareSignal
from inference_decisions.repairs.live_node import LiveCondition, NodeOwner, Purchase
from inference_decisions.repairs.worker_windows import peer_name

KubernetesObject = Mapping[str, Any]

#: https://karpenter.sh/v1.15/concepts/scheduling/#well-known-labels
_NODEPOOL_LABEL: Final = "karpenter.sh/nodepool"
_CAPACITY_LABEL: Final = "karpenter.sh/capacity-type"
_RESERVATION_TYPE_LABEL: Final = "karpenter.k8s.aws/capacity-reservation-type"
RESERVATION_LABEL: Final = "karpenter.k8s.aws/capacity-reservation-id"
_COUNT_LABELS: Final = (
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.k8s.aws/instance-accelerator-count",
)
#: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
_NODEGROUP_LABEL: Final = "eks.amazonaws.com/nodegroup"
_NODEGROUP_CAPACITY_LABEL: Final = "eks.amazonaws.com/capacityType"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
#: What device plug-ins offer: https://docs.aws.amazon.com/eks/latest/userguide/device-management.html
_RESOURCES: Final = ("nvidia.com/gpu", "aws.amazon.com/neuron")
_PURCHASES: Final[Mapping[str, Purchase]] = {
    "spot": "spot",
    "SPOT": "spot",
    "CAPACITY_BLOCK": "capacity_block",
    "capacity-block": "capacity_block",
    "default": "reservation",
    "reserved": "reservation",
}
_ACCELERATORS: Final = "AcceleratedHardwareReady"
_STUCK_SECONDS: Final = 60.0
#: Labels of a pod that change with each revision: of a Deployment, a LeaderWorkerSet and a StatefulSet.
_REVISION_LABELS: Final = (
    "pod-template-hash",
    "leaderworkerset.sh/template-revision-hash",
    "controller-revision-hash",
)


@dataclass(frozen=True, slots=True)
class NodeObject:
    """A node of Kubernetes, and what its object says."""

    content: KubernetesObject
    skew: float = 0.0
    """How far the API server's clock is ahead of ours, in seconds."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.content["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Its identifier."""
        return str(self.content["metadata"]["uid"])

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.content["metadata"].get("labels", {})  # type: ignore[no-any-return]

    @property
    def pool(self) -> str:
        """Name of its pool, else of its NodePool. Empty if it is of none.

        A pool with a minimum has two NodePools, and nodes of both have its label.
        """
        return self.labels.get(POOL_LABEL_OF_PODS) or self.labels.get(_NODEPOOL_LABEL, "")

    @property
    def rack(self) -> str:
        """The network node that it hangs on. Empty if it is not known."""
        return self.labels.get(RACK_LABEL, "")

    @property
    def instance(self) -> str:
        """Identifier of its EC2 instance, the end of ``aws:///us-west-2a/i-0123``."""
        return str(self.content["spec"].get("providerID", "")).rsplit("/", 1)[-1]

    @property
    def instance_type(self) -> str:
        """Its instance type."""
        return self.labels.get(INSTANCE_TYPE_LABEL, "")

    @property
    def ready(self) -> bool | None:
        """Whether the kubelet reports it ready. None if it stopped reporting."""
        status = next((each["status"] for each in self._conditions() if each["type"] == "Ready"), "Unknown")
        return {"True": True, "False": False}.get(status)

    @property
    def cordoned(self) -> bool:
        """Whether it is closed to new pods."""
        return bool(self.content["spec"].get("unschedulable", False))

    @property
    def mark(self) -> str:
        """The mark of our cordon: the case as JSON. Empty if it is not ours."""
        return str(self.content["metadata"].get("annotations", {}).get(CORDON_ANNOTATION, ""))

    @property
    def created_at(self) -> float:
        """When it joined, in seconds since the epoch by our clock."""
        return seconds_of(self.content["metadata"]["creationTimestamp"]) - self.skew

    @property
    def boot(self) -> str:
        """Identifier of the boot."""
        return str(self.content["status"].get("nodeInfo", {}).get("bootID", ""))

    @property
    def ready_since(self) -> float:
        """When its readiness last changed. After a reboot it is later than the boot."""
        times = [each for each in self._conditions() if each["type"] == "Ready"]
        return seconds_of(times[0]["lastTransitionTime"]) - self.skew if times else self.created_at

    @property
    def owner(self) -> tuple[NodeOwner, str]:
        """What replaces it, and the name of its NodeClaim. That of an Auto Scaling group is asked for."""
        for reference in self.content["metadata"].get("ownerReferences", []):
            if reference["kind"] == "NodeClaim":
                return "node_claim", str(reference["name"])
        return ("auto_scaling_group", "") if self.labels.get(_NODEGROUP_LABEL) else ("none", "")

    @property
    def purchase(self) -> Purchase:
        """How it was bought."""
        for label in (_RESERVATION_TYPE_LABEL, _CAPACITY_LABEL, _NODEGROUP_CAPACITY_LABEL):
            if (found := _PURCHASES.get(self.labels.get(label, ""))) is not None:
                return found
        return "on_demand"

    @property
    def gpus_allocatable(self) -> int:
        """Accelerators that the kubelet offers."""
        allocatable = self.content["status"].get("allocatable", {})
        return sum(int(allocatable.get(name, 0)) for name in _RESOURCES)

    def gpus_expected(self, accelerators: Mapping[str, int]) -> int:
        """Return the accelerators of its instance type. 0 if it has none, or is not known."""
        for label in _COUNT_LABELS:
            if self.labels.get(label, "").isdigit():
                return int(self.labels[label])
        return accelerators.get(self.instance_type, 0)

    @property
    def conditions(self) -> tuple[LiveCondition, ...]:
        """Its conditions. Those of pressure are healthy if they are False, and none of them is about GPUs."""
        return tuple(
            LiveCondition(
                each["type"],
                {"True": True, "False": False}.get(each["status"]),
                each.get("reason", ""),
                seconds_of(each["lastTransitionTime"]) - self.skew,
            )
            for each in self._conditions()
            if each["type"].endswith("Ready") and "lastTransitionTime" in each
        )

    def signals(self) -> Iterator[HardwareSignal]:
        """Return what the kubelet and the node monitoring agent report: of accelerators the reason."""
        for condition in self.conditions:
            if condition.healthy:
                continue
            broken = condition.kind == _ACCELERATORS and condition.healthy is False
            yield HardwareSignal(
                kind="node_condition",
                code=condition.code,
                node=self.name,
                # A node that was never well has conditions from just before it joined.
                at=condition.since if broken else max(condition.since, self.created_at),
                source="node-condition",
                reason=condition.reason if broken else "",
            )

    def _conditions(self) -> Sequence[Mapping[str, str]]:
        return self.content["status"].get("conditions", [])  # type: ignore[no-any-return]


def seconds_of(moment: str) -> float:
    """Return a time of Kubernetes, such as ``2026-11-01T00:00:00Z``, in seconds since the epoch."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def ready_since(pod: KubernetesObject) -> float | None:
    """Return since when a pod is ready, by the API server's clock. None if it is not."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return seconds_of(condition["lastTransitionTime"])
    return None


def is_running(pod: KubernetesObject) -> bool:
    """Return whether a pod has not ended."""
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def is_stuck(pod: KubernetesObject, now: float) -> bool:
    """Return whether a pod should have ended by its grace period, and a minute more, and is still there.

    Its kubelet is dead, or a finalizer or a volume holds the object. Its requests have ended in any case.
    Karpenter waits for such a pod no longer either (``IsStuckTerminating`` in pkg/utils/pod/scheduling.go of
    kubernetes-sigs/karpenter). The time of deletion includes the grace period.

    now: Seconds since the epoch, by the API server's clock.
    """
    deleted = pod["metadata"].get("deletionTimestamp")
    return deleted is not None and now - seconds_of(deleted) > _STUCK_SECONDS


def worker_pods(
    pods: Iterable[KubernetesObject], nodes: Mapping[str, WatchedNode], skew: float
) -> list[WatchedWorker]:
    """Return the workers that are ready, in the order of their names.

    pods: Serving pods.
    nodes: Nodes by name.
    skew: How far the API server's clock is ahead of ours, in seconds.
    """
    found = list[WatchedWorker]()
    for pod in pods:
        labels, since = pod["metadata"].get("labels", {}), ready_since(pod)
        node = nodes.get(pod["spec"].get("nodeName", ""))
        if node is None or since is None or not is_running(pod):
            continue
        if labels.get(ROLE_LABEL_OF_PODS) not in WORKER_ROLES:
            continue
        peers = peer_name(
            release=labels.get(RELEASE_LABEL_OF_PODS, ""),
            revision=next((labels[each] for each in _REVISION_LABELS if each in labels), ""),
            role=labels[ROLE_LABEL_OF_PODS],
            gpu=node.instance_type,
        )
        found.append(WatchedWorker(pod["metadata"]["name"], node, peers, since - skew))
    return sorted(found, key=lambda each: each.name)


def host_engines(pods: Sequence[KubernetesObject]) -> int:
    """Return the DCGM host engines among the containers of a node's pods; at least one.

    An exporter that is told of a remote engine runs none of its own
    (https://github.com/NVIDIA/dcgm-exporter, ``DCGM_REMOTE_HOSTENGINE_INFO``).
    """
    engines = 0
    for pod in pods:
        for container in pod["spec"].get("containers", []):
            variables = {each["name"] for each in container.get("env", [])}
            runs_dcgm = "dcgm" in str(container.get("image", "")).rsplit("/", 1)[-1]
            engines += runs_dcgm and "DCGM_REMOTE_HOSTENGINE_INFO" not in variables
    return max(1, engines)
