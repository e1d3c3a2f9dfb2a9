"""AWS rights of Kubernetes service accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

#: One statement of an IAM policy document, in IAM's own words.
Statement = Mapping[str, Any]

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}


class PodIdentity(Construct):
    """A role that the pods of some service accounts take on through EKS Pod Identity.

    The service accounts themselves belong to the charts that use them.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    namespace, service_accounts
        Whose pods.
    statements
        What they may do, as statements of one policy.
    managed_policy_arns
        Policies beside it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str,
        service_accounts: Sequence[str],
        statements: Sequence[Statement] = (),
        managed_policy_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=_TRUST,
            managed_policy_arns=list(managed_policy_arns) or None,
            policies=[
                iam.CfnRole.PolicyProperty(policy_name="Rights", policy_document=policy_document(statements))
            ]
            if statements
            else None,
        )
        for service_account in service_accounts:
            eks.CfnPodIdentityAssociation(
                self,
                f"Association-{service_account}",
                cluster_name=cluster_name,
                namespace=namespace,
                service_account=service_account,
                role_arn=role.attr_arn,
            )


def policy_document(statements: Sequence[Statement]) -> dict[str, Any]:
    """Return an IAM policy document of these statements."""
    return {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}
