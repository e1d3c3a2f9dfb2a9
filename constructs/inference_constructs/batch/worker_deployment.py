"""The workers of one model's batch queues, on EKS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_catalog.charts import Chart
from inference_constructs.batch.model_worker import WILDCARDS, ModelWorker
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.findings import acknowledge_grants
from inference_constructs.helm.release import HelmRelease


class WorkerDeployment(Construct):
    """A Helm release of the workers, and the permissions of its pods.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    cluster
        The cluster.
    chart, release, values
        Chart, name of the release and of its service account, and values.
    worker
        Settings and permissions of one worker.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster: eks.ICluster,
        chart: Chart,
        release: str,
        values: Mapping[str, Any],
        worker: ModelWorker,
    ) -> None:
        super().__init__(scope, construct_id)
        identity = PodIdentity(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=chart.namespace,
            service_accounts=[release],
            role_path=worker.store.role_path,
        )
        acknowledge_grants(identity, worker.grant_run(identity), WILDCARDS)
        HelmRelease(
            self, "Release", cluster=cluster, chart=chart, release=release, values=values
        ).node.add_dependency(identity)
