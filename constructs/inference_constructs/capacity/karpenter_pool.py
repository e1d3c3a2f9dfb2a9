"""A pool of nodes that Karpenter starts and terminates."""

from __future__ import annotations

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_constructs.capacity.pool_manifests import (
    NodeProperties,
    PoolProperties,
    kept_node_pool,
    node_class,
    node_pool,
)


class KarpenterPool(eks.KubernetesManifest):
    """A NodePool with its EC2NodeClass, and a second NodePool if the pool has a minimum.

    The second NodePool has its own manifest, because CDK does not delete an object that is only removed from
    a manifest (https://github.com/aws/aws-cdk/issues/22085).

    Parameters
    ----------
    cluster
        Cluster that runs Karpenter.
    pool
        The pool.
    nodes
        Properties that all nodes share.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        pool: PoolProperties,
        nodes: NodeProperties,
    ) -> None:
        super().__init__(
            scope, construct_id, cluster=cluster, manifest=[node_class(pool, nodes), node_pool(pool)]
        )
        if pool.min_nodes:
            kept = eks.KubernetesManifest(self, "Kept", cluster=cluster, manifest=[kept_node_pool(pool)])
            kept.node.add_dependency(self.node.find_child("Resource"))
