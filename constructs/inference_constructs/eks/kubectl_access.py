"""Access to the cluster from other stacks, by plain values instead of the cluster's construct."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


@dataclass(frozen=True)
class KubectlAccess:
    """Values with which a stack applies charts and manifests to a cluster of another stack.

    A reference to the cluster's construct would add resources to the cluster's stack for each model.

    Examples
    --------
    >>> access = KubectlAccess.from_cluster(cluster, cluster_name="search")  # doctest: +SKIP
    >>> HelmRelease(stack, "Chart", cluster=access.import_cluster(stack), ...)  # doctest: +SKIP
    """

    cluster_name: str
    """Name of the cluster, a plain string."""
    service_token: str
    """ARN of the Lambda function that applies charts and manifests."""
    handler_role_arn: str
    """ARN of that function's role. The role may read the chart assets of every stack."""

    @classmethod
    def from_cluster(cls, cluster: eks.Cluster, *, cluster_name: str) -> KubectlAccess:
        """Return the access to a cluster.

        Parameters
        ----------
        cluster
            The cluster.
        cluster_name
            Its name as a plain string. With the construct's name, other stacks would depend on the construct.

        Raises
        ------
        ValueError
            If the cluster has no kubectl provider.
        """
        provider = cluster.kubectl_provider
        if provider is None or provider.role is None:
            raise ValueError(f"{cluster.node.path} has no kubectl provider: give kubectl_provider_options")
        return cls(
            cluster_name=cluster_name,
            service_token=provider.service_token,
            handler_role_arn=provider.role.role_arn,
        )

    def import_cluster(self, scope: Construct) -> eks.ICluster:
        """Return the cluster as an imported construct.

        Parameters
        ----------
        scope
            The stack that uses the cluster. Call this only once per stack, because the construct IDs are
            fixed.
        """
        role = iam.Role.from_role_arn(scope, "KubectlRole", self.handler_role_arn, mutable=False)
        provider = eks.KubectlProvider.from_kubectl_provider_attributes(
            scope, "KubectlProvider", role=role, service_token=self.service_token
        )
        return eks.Cluster.from_cluster_attributes(
            scope, "Cluster", cluster_name=self.cluster_name, kubectl_provider=provider
        )
