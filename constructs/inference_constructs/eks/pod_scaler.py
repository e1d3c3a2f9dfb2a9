"""KEDA, which sets the number of pods: elastic workers by their load, batch workers by their queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_catalog.charts import Chart
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.helm.release import HelmRelease

#: Service account of the chart's operator. Only the operator reads queues. It is not the chart's default:
#: in early releases another stack has that one's pod identity, and EKS refuses a second one.
SCALER_ACCOUNT = "keda-scaler"


class PodScaler(Construct):
    """A release of KEDA. Its operator has no AWS permissions until a stack grants `role` some.

    It must be deleted after all ScaledObjects, because only the operator can finalise them.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    cluster
        The cluster.
    chart, values
        KEDA's chart and its values.
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
    ) -> None:
        super().__init__(scope, construct_id)
        identity = PodIdentity(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=chart.namespace,
            service_accounts=[SCALER_ACCOUNT],
        )
        self._role_name = identity.role_name
        # A pod that starts before its identity exists never gets it.
        HelmRelease(
            self, "Release", cluster=cluster, chart=chart, values=values, wait=True, create_namespace=True
        ).node.add_dependency(identity)

    def role(self, scope: Construct, construct_id: str) -> iam.IRole:
        """Return the operator's role, for grants of another stack: they are policies of that stack.

        Parameters
        ----------
        scope, construct_id
            Place of the imported role.
        """
        return iam.Role.from_role_name(scope, construct_id, self._role_name)
