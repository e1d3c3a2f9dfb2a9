"""A queue that admits jobs to a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_catalog import node_facts

Manifest = dict[str, Any]

# The manifest is applied only when it changes. So the deployment that turns the shift off applies the quota
# of the blueprint, because it removes this annotation.
_SHIFTED = {"annotations": {"inference-blueprints/quota": "capacity-shift"}}
_API_VERSION = "kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True)
class QueueProperties:
    """The queue of one pool."""

    pool: str
    """Name of the pool, and of the three objects."""
    taints: Sequence[Mapping[str, str]]
    """Taints of its nodes in Kubernetes' format. Admitted pods tolerate them."""
    quota: Mapping[str, str]
    """Total that jobs may request from the pool: Kubernetes quantities by resource."""
    lenders: Sequence[str] = ()
    """Pools whose idle nodes the queue's jobs may also use, in order of preference."""
    shifted: bool = False
    """Whether the capacity shift raises and lowers the quota."""


def resource_flavor(queue: QueueProperties) -> Manifest:
    """Return the ResourceFlavor, which adds the pool's node selector and tolerations to admitted pods.

    queue: The pool's queue.
    """
    return _object(
        "ResourceFlavor",
        {"name": queue.pool},
        {
            "nodeLabels": {node_facts.POOL_LABEL: queue.pool},
            "tolerations": [_toleration(taint) for taint in queue.taints],
        },
    )


def cluster_queue(queue: QueueProperties, *, cohort: str, namespace: str) -> Manifest:
    """Return the ClusterQueue with a pool's quota. Lent quota is reclaimed when the pool's own jobs need it.

    cohort: Group of queues that lend each other unused quota.
    namespace: Namespace of the jobs that are admitted.
    """
    nothing = dict.fromkeys(queue.quota, "0")
    quotas = {queue.pool: queue.quota, **dict.fromkeys(queue.lenders, nothing)}
    return _object(
        "ClusterQueue",
        {"name": queue.pool, **(_SHIFTED if queue.shifted else {})},
        {
            "cohortName": cohort,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceGroups": [
                {
                    "coveredResources": list(queue.quota),
                    "flavors": [
                        {
                            "name": flavor,
                            "resources": [
                                {"name": resource, "nominalQuota": quantity}
                                for resource, quantity in quota.items()
                            ],
                        }
                        for flavor, quota in quotas.items()
                    ],
                }
            ],
            # A queue reclaims lent quota before it borrows. Within a queue, the priority decides.
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        },
    )


def local_queue(queue: QueueProperties, *, namespace: str) -> Manifest:
    """Return the LocalQueue, which jobs of the namespace refer to.

    namespace: Namespace of the jobs.
    """
    metadata = {"name": queue.pool, "namespace": namespace}
    return _object("LocalQueue", metadata, {"clusterQueue": queue.pool})


def _object(kind: str, metadata: Manifest, specification: Manifest) -> Manifest:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": specification}


def _toleration(taint: Mapping[str, str]) -> Manifest:
    """Return a toleration of one taint. It compares the value only if the taint has one."""
    return {**taint, "operator": "Equal" if "value" in taint else "Exists"}


class JobQueue(eks.KubernetesManifest):
    """Kueue's ResourceFlavor, ClusterQueue and LocalQueue of one pool, created and deleted together.

    Parameters
    ----------
    cluster
        Cluster that runs Kueue.
    queue
        The pool's queue.
    cohort
        Group of queues that lend each other unused quota.
    namespace
        Namespace of the jobs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        queue: QueueProperties,
        cohort: str,
        namespace: str,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            cluster=cluster,
            manifest=[
                resource_flavor(queue),
                cluster_queue(queue, cohort=cohort, namespace=namespace),
                local_queue(queue, namespace=namespace),
            ],
        )
