"""Certificates of the discovery store, made in the account by CodeBuild."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from inference_constructs.build_start import start_build
from inference_constructs.findings import acknowledge, acknowledge_grants, acknowledge_wildcards
from inference_constructs.observability.kept_log_group import short_log
from inference_constructs.policy_statements import Statement
from inference_contracts.discovery_store import MEMBER_COMMON_NAME
from inference_runtime import runtime_directory

_AUTHORITY_DAYS = 3650
_DAYS = 730
#: A certificate is renewed when this is left, so tasks have this long to start with the new one.
_LEFT_DAYS = 365
#: Members that start again with a new certificate do so one after the other.
_BUILD_MINUTES = 45


class DiscoveryCertificates(Construct):
    """A certificate authority for one store, and certificates of its members and of its clients.

    The key of the authority is in a secret that only the build may read, so that a renewed certificate is
    trusted by tasks that still have the old one. The build runs at a deployment, and every month. It starts
    services again whose tasks are older than their certificate, because a task reads it when it starts.

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
        self._authority = self._add_secret("Authority", "Certificate authority of the discovery store")
        #: Values ``ca``, ``cert`` and ``key`` of the members.
        self.members = self._add_secret("Members", "Certificate of the members of the discovery store")
        #: Value ``ca``, and values ``NAME-cert`` and ``NAME-key`` of each client.
        self.clients = self._add_secret("Clients", "Certificates of the clients of the discovery store")
        #: Values ``ca``, ``cert``, ``key`` and ``password`` of who keeps users and roles.
        self.administrator = self._add_secret("Administrator", "Administrator of the discovery store")
        script = runtime_directory() / "discovery_certificates" / "issue.sh"
        text = script.read_text(encoding="utf-8")
        project = self._add_project(cluster_name, hosts, clients, text)
        #: Ends when the certificates exist.
        self.made = start_build(
            self,
            project=project,
            tag=hashlib.sha256("\n".join([text, *hosts, *clients]).encode()).hexdigest()[:16],
            wait=True,
        )
        events.Rule(
            self,
            "Monthly",
            schedule=events.Schedule.rate(cdk.Duration.days(30)),
            targets=[targets.CodeBuildProject(project)],
        )

    def _add_secret(self, name: str, description: str) -> secretsmanager.Secret:
        secret = secretsmanager.Secret(
            self, name, description=description, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        acknowledge(secret, {"SMG4": "CodeBuild renews the certificates, not a rotation function."})
        return secret

    def _add_project(
        self, cluster_name: str, hosts: Sequence[str], clients: Sequence[str], script: str
    ) -> codebuild.Project:
        log = short_log(self, "Log")
        role = iam.Role(self, "BuildRole", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        grants = [log.grant_write(role)]
        for secret in (self._authority, self.members, self.clients, self.administrator):
            grants += [secret.grant_read(role), secret.grant_write(role)]
        acknowledge_grants(role, grants, "CodeBuild names its log streams.")
        restarts = _restarts(cdk.Stack.of(self), cluster_name)
        for statement in restarts:
            role.add_to_policy(iam.PolicyStatement.from_json(dict(statement)))
        acknowledge_wildcards(
            role,
            restarts,
            "Services of models get their names when they are deployed. Lists of services have only a "
            "condition, and task definitions can be described only without a resource.",
        )
        values = {
            "CLUSTER": cluster_name,
            "AUTHORITY": self._authority.secret_arn,
            "MEMBERS": self.members.secret_arn,
            "CLIENTS": self.clients.secret_arn,
            "ADMINISTRATOR": self.administrator.secret_arn,
            "HOSTS": ",".join(hosts),
            "MEMBER_NAME": MEMBER_COMMON_NAME,
            "CLIENT_NAMES": ",".join(clients),
            "AUTHORITY_DAYS": str(_AUTHORITY_DAYS),
            "DAYS": str(_DAYS),
            "LEFT_DAYS": str(_LEFT_DAYS),
        }
        project = codebuild.Project(
            self,
            "Build",
            build_spec=codebuild.BuildSpec.from_object(
                {
                    "version": "0.2",
                    "env": {"shell": "bash"},
                    "phases": {"build": {"commands": [script]}},
                }
            ),
            concurrent_build_limit=1,
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.STANDARD_7_0,
                compute_type=codebuild.ComputeType.SMALL,
                environment_variables={
                    name: codebuild.BuildEnvironmentVariable(value=value) for name, value in values.items()
                },
            ),
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
            role=role.without_policy_updates(),
            timeout=cdk.Duration.minutes(_BUILD_MINUTES),
        )
        acknowledge(project, {"CB4": "The build has no artifacts: its results are secrets."})
        return project


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
