"""A queue that admits jobs to a pool."""

from __future__ import annotations

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_constructs.capacity.queue_manifests import (
    QueueProperties,
    cluster_queue,
    local_queue,
    resource_flavor,
)


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
