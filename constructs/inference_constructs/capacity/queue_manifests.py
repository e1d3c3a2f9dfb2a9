"""Kueue's objects for each pool: a ResourceFlavor (nodes), a ClusterQueue (quota) and a LocalQueue (entry).

Fields as in Kueue 0.19 (https://kueue.sigs.k8s.io/docs/concepts/).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference_blueprints.catalog import placement

Manifest = dict[str, Any]

_API_VERSION = "kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True)
class QueueProperties:
    """The queue of one pool.

    Parameters
    ----------
    pool
        Name of the pool, and of the three objects.
    taints
        Taints of its nodes, as Kubernetes spells them. Admitted pods tolerate them.
    quota
        Total that jobs may request from the pool: Kubernetes quantities by resource.
    lenders
        Pools whose idle nodes this queue's jobs may run on, in the order in which they are tried.
    """

    pool: str
    taints: Sequence[Mapping[str, str]]
    quota: Mapping[str, str]
    lenders: Sequence[str] = ()


def resource_flavor(queue: QueueProperties) -> Manifest:
    """Return what sends admitted pods to the pool's nodes and lets them stay there.

    Parameters
    ----------
    queue
        The pool's queue.
    """
    return _object(
        "ResourceFlavor",
        {"name": queue.pool},
        {
            "nodeLabels": {placement.POOL_LABEL: queue.pool},
            "tolerations": [_toleration(taint) for taint in queue.taints],
        },
    )


def cluster_queue(queue: QueueProperties, *, cohort: str, namespace: str) -> Manifest:
    """Return the quota of a pool, which goes back to its own jobs when these need it.

    Parameters
    ----------
    queue
        The pool's queue.
    cohort
        Queues that lend each other what they do not use.
    namespace
        Namespace of the jobs that are admitted.
    """
    nothing = dict.fromkeys(queue.quota, "0")
    quotas = {queue.pool: queue.quota, **dict.fromkeys(queue.lenders, nothing)}
    return _object(
        "ClusterQueue",
        {"name": queue.pool},
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
            # What was lent comes back before anything is borrowed; among a queue's own jobs priority decides.
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        },
    )


def local_queue(queue: QueueProperties, *, namespace: str) -> Manifest:
    """Return what jobs of the namespace name to be admitted to the pool.

    Parameters
    ----------
    queue
        The pool's queue.
    namespace
        Where the jobs are.
    """
    metadata = {"name": queue.pool, "namespace": namespace}
    return _object("LocalQueue", metadata, {"clusterQueue": queue.pool})


def _object(kind: str, metadata: Manifest, specification: Manifest) -> Manifest:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": specification}


def _toleration(taint: Mapping[str, str]) -> Manifest:
    """Tolerate one taint; without a value there is none to compare."""
    return {**taint, "operator": "Equal" if "value" in taint else "Exists"}
