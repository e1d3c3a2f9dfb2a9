"""KEDA, which scales the workers on EKS by what their queues hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_blueprints.catalog.charts import Chart
from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.helm.release import HelmRelease

#: Service account of the chart's operator, the only part that reads queues.
_SERVICE_ACCOUNT = "keda-operator"


class QueueScaler(Construct):
    """A release of KEDA, whose operator may look at these queues and at nothing else.

    It is in the stack of what it scales: only its operator can end a ScaledObject, so it goes after them.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    cluster
        The cluster.
    chart, values
        KEDA's, and the values.
    queues
        Queues of the workers that it scales.
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
        # A pod that starts before its identity is there never gets it.
        HelmRelease(
            self, "Release", cluster=cluster, chart=chart, values=values, wait=True, create_namespace=True
        ).node.add_dependency(identity)
