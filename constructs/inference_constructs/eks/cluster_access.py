"""How other stacks reach the cluster: by values that outlive its resources, not by its construct."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


@dataclass(frozen=True)
class ClusterAccess:
    """What a chart or a manifest in another stack needs of the cluster.

    A construct that refers to the cluster itself would add to its stack, and so would every model.

    Parameters
    ----------
    cluster_name
        A plain string.
    service_token
        ARN of the function that applies charts and manifests.
    handler_role_arn
        Its role, which may read chart assets of every stack.
    """

    cluster_name: str
    service_token: str
    handler_role_arn: str

    def cluster_in(self, scope: Construct) -> eks.ICluster:
        """Return the cluster as a stack imports it.

        Parameters
        ----------
        scope
            The stack; call once a stack.
        """
        role = iam.Role.from_role_arn(scope, "KubectlRole", self.handler_role_arn, mutable=False)
        provider = eks.KubectlProvider.from_kubectl_provider_attributes(
            scope, "KubectlProvider", role=role, service_token=self.service_token
        )
        return eks.Cluster.from_cluster_attributes(
            scope, "Cluster", cluster_name=self.cluster_name, kubectl_provider=provider
        )
