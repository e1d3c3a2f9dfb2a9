"""Certificates of the discovery store, made in the account by CodeBuild."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from constructs import Construct

from inference_constructs.issued_certificates import IssuedCertificates
from inference_constructs.policy_statements import Statement
from inference_contracts.discovery_store import MEMBER_COMMON_NAME
from inference_runtime import runtime_directory

_AUTHORITY_DAYS = 3650
_DAYS = 730
#: A certificate is renewed when this is left, so tasks have this long to start with the new one.
_LEFT_DAYS = 365
#: Members that start again with a new certificate do so one after the other.
_BUILD_MINUTES = 45


class DiscoveryCertificates(IssuedCertificates):
    """A certificate authority for one store, and certificates of its members and of its clients.

    The authority stays, so that a renewed certificate is trusted by tasks that still have the old one. The
    build runs every month. It starts services again whose tasks are older than their certificate, because a
    task reads it when it starts.

    Parameters
    ----------
    cluster_name
        Cluster of these services, a plain string.
    hosts
        Names of the members.
    clients
        Common names of the clients' certificates.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        hosts: Sequence[str],
        clients: Sequence[str],
    ) -> None:
        super().__init__(scope, construct_id)
        authority = self.add_secret("Authority", "Certificate authority of the discovery store")
        #: Values ``ca``, ``cert`` and ``key`` of the members.
        self.members = self.add_secret("Members", "Certificate of the members of the discovery store")
        #: Value ``ca``, and values ``NAME-cert`` and ``NAME-key`` of each client.
        self.clients = self.add_secret("Clients", "Certificates of the clients of the discovery store")
        #: Values ``ca``, ``cert``, ``key`` and ``password`` of who keeps users and roles.
        self.administrator = self.add_secret("Administrator", "Administrator of the discovery store")
        script = runtime_directory() / "discovery_certificates" / "issue.sh"
        text = script.read_text(encoding="utf-8")
        self.issue(
            command=text,
            values={
                "CLUSTER": cluster_name,
                "AUTHORITY": authority.secret_arn,
                "MEMBERS": self.members.secret_arn,
                "CLIENTS": self.clients.secret_arn,
                "ADMINISTRATOR": self.administrator.secret_arn,
                "HOSTS": ",".join(hosts),
                "MEMBER_NAME": MEMBER_COMMON_NAME,
                "CLIENT_NAMES": ",".join(clients),
                "AUTHORITY_DAYS": str(_AUTHORITY_DAYS),
                "DAYS": str(_DAYS),
                "LEFT_DAYS": str(_LEFT_DAYS),
            },
            secrets=[authority, self.members, self.clients, self.administrator],
            digested="\n".join([text, *hosts, *clients]),
            rule="Monthly",
            days=30,
            minutes=_BUILD_MINUTES,
            statements=_restarts(cdk.Stack.of(self), cluster_name),
            reason="Services of models get their names when they are deployed. Lists of services have only a "
            "condition, and task definitions can be described only without a resource.",
        )


def _restarts(stack: cdk.Stack, cluster_name: str) -> list[Statement]:
    """Return what starts services of a cluster again.

    Service Authorization Reference, "Actions, resources, and condition keys for Amazon Elastic Container
    Service": ListServices has the condition ``ecs:cluster``, DescribeTaskDefinition has no resource.
    """
    prefix = f"arn:{stack.partition}:ecs:{stack.region}:{stack.account}"
    return [
        {
            "Sid": "ListServices",
            "Effect": "Allow",
            "Action": "ecs:ListServices",
            "Resource": "*",
            "Condition": {"ArnEquals": {"ecs:cluster": f"{prefix}:cluster/{cluster_name}"}},
        },
        {"Sid": "ReadTasks", "Effect": "Allow", "Action": "ecs:DescribeTaskDefinition", "Resource": "*"},
        {
            "Sid": "StartAgain",
            "Effect": "Allow",
            "Action": ["ecs:DescribeServices", "ecs:UpdateService"],
            "Resource": f"{prefix}:service/{cluster_name}/*",
        },
    ]
