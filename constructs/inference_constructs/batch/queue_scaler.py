"""KEDA, which scales the workers on EKS by the length of their queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_blueprints.catalog.charts import Chart
from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.helm.release import HelmRelease

#: Service account of the chart's operator. Only the operator reads queues.
_SERVICE_ACCOUNT = "keda-operator"


class QueueScaler(Construct):
    """A release of KEDA. Its operator may read the length of these queues and has no other permissions.

    It is in the same stack as the workers. Only the operator can finalise a ScaledObject, so the release must
    be deleted after the ScaledObjects.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    cluster
        The cluster.
    chart, values
        KEDA's chart and its values.
    queues
        Queues of the scaled workers.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster: eks.ICluster,
        chart: Chart,
        values: Mapping[str, Any],
        queues: Sequence[BatchShardQueue],
    ) -> None:
        super().__init__(scope, construct_id)
        identity = PodIdentity(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=chart.namespace,
            service_accounts=[_SERVICE_ACCOUNT],
        )
        for queue in queues:
            queue.grant_read_attributes(identity)
        # A pod that starts before its identity exists never gets it.
        HelmRelease(
            self, "Release", cluster=cluster, chart=chart, values=values, wait=True, create_namespace=True
        ).node.add_dependency(identity)
