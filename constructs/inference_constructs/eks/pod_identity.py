"""AWS permissions of Kubernetes service accounts."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
import jsii
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from inference_constructs.policy_statements import Statement, policy_document

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


@jsii.implements(iam.IGrantable)
class PodIdentity(Construct):
    """An IAM role that the pods of service accounts assume through EKS Pod Identity.

    The charts create the service accounts. All permissions are in one inline policy of the role. Pods start
    after the role exists, so they always have all permissions. Every ``grant_*`` method of a CDK construct
    accepts a ``PodIdentity`` and adds to that policy.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    namespace
        Kubernetes namespace of the pods.
    service_accounts
        Names of the service accounts.
    statements
        Statements of the inline policy that grants cannot express, such as statements with IDs or conditions.
    managed_policy_arns
        ARNs of additional managed policies of the role.
    role_path
        IAM path of the role; None for ``/``.

    Examples
    --------
    >>> pods = PodIdentity(  # doctest: +SKIP
    ...     stack, "Pods", cluster_name="search", namespace="models", service_accounts=["worker"]
    ... )
    >>> queue.grant_consume(pods)  # doctest: +SKIP
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
        role_path: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._statements = list(statements)
        self._role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=_TRUST,
            managed_policy_arns=list(managed_policy_arns) or None,
            path=role_path,
            policies=_inline_policies(self._statements),
        )
        self._principal = _PodPrincipal(self)
        for service_account in service_accounts:
            eks.CfnPodIdentityAssociation(
                self,
                f"Association-{service_account}",
                cluster_name=cluster_name,
                namespace=namespace,
                service_account=service_account,
                role_arn=self._role.attr_arn,
            )

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The principal to which grants add statements."""
        return self._principal

    @property
    def role_arn(self) -> str:
        """ARN of the role."""
        return self._role.attr_arn

    @property
    def role_name(self) -> str:
        """Name of the role."""
        return self._role.ref

    def add_to_policy(self, statement: iam.PolicyStatement) -> IDependable:
        """Add a statement to the role's inline policy.

        Parameters
        ----------
        statement
            The statement.

        Returns
        -------
        IDependable
            The role, which contains the permission.
        """
        document = statement.to_statement_json()
        in_lists = {key: _listed(document[key]) for key in ("Action", "Resource")}
        self._statements.append({**document, **in_lists})
        self._role.policies = _inline_policies(self._statements)
        return self._role


@jsii.implements(iam.IPrincipal)
class _PodPrincipal:
    """The principal of a pod identity. CDK's roles have separate policies, for which pods would not wait."""

    def __init__(self, identity: PodIdentity) -> None:
        self._identity = identity

    @property
    def grant_principal(self) -> iam.IPrincipal:
        return self

    @property
    def assume_role_action(self) -> str:
        return "sts:AssumeRole"

    @property
    def policy_fragment(self) -> iam.PrincipalPolicyFragment:
        return iam.ArnPrincipal(self._identity.role_arn).policy_fragment

    @property
    def principal_account(self) -> str:
        """Account of the role. Grants in the same account change only the role's policy."""
        return cdk.Stack.of(self._identity).account

    def add_to_principal_policy(self, statement: iam.PolicyStatement) -> iam.AddToPrincipalPolicyResult:
        return iam.AddToPrincipalPolicyResult(
            statement_added=True, policy_dependable=self._identity.add_to_policy(statement)
        )


def _inline_policies(
    statements: Sequence[Statement],
) -> list[cdk.IResolvable | iam.CfnRole.PolicyProperty] | None:
    if not statements:
        return None
    return [iam.CfnRole.PolicyProperty(policy_name="Rights", policy_document=policy_document(statements))]


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
