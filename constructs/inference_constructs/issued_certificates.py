"""A build that makes certificates in the account, and renews them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

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


class IssuedCertificates(Construct):
    """Secrets with a certificate authority and its certificates, and the build that fills them.

    The key of the authority is in a secret that only the build may read. The build runs at each deployment
    that changes something, and again and again.

    Attributes
    ----------
    made
        Ends when all certificates exist.
    """

    made: cdk.CustomResource

    def add_secret(self, name: str, description: str) -> secretsmanager.Secret:
        """Add a secret that the build fills."""
        secret = secretsmanager.Secret(
            self, name, description=description, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        acknowledge(secret, {"SMG4": "CodeBuild renews the certificates, not a rotation function."})
        return secret

    def issue(
        self,
        *,
        command: str,
        values: Mapping[str, str],
        secrets: Sequence[secretsmanager.Secret],
        digested: str,
        rule: str,
        days: int,
        minutes: int,
        statements: Sequence[Statement] = (),
        reason: str = "",
    ) -> None:
        """Fill the secrets.

        Parameters
        ----------
        command
            Command of the build.
        values
            Its variables.
        secrets
            Secrets that it reads and writes.
        digested
            What runs it again when it changes.
        rule, days
            Name of the rule that runs the build again, and days from one build to the next.
        minutes
            Longest time of a build.
        statements
            What else it may do.
        reason
            Why the wildcards in them are needed.
        """
        log = short_log(self, "Log")
        role = iam.Role(self, "BuildRole", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        grants = [log.grant_write(role)]
        for secret in secrets:
            grants += [secret.grant_read(role), secret.grant_write(role)]
        acknowledge_grants(role, grants, "CodeBuild names its log streams.")
        for statement in statements:
            role.add_to_policy(iam.PolicyStatement.from_json(dict(statement)))
        acknowledge_wildcards(role, statements, reason)
        project = codebuild.Project(
            self,
            "Build",
            build_spec=codebuild.BuildSpec.from_object(
                {
                    "version": "0.2",
                    "env": {"shell": "bash"},
                    "phases": {"build": {"commands": [command]}},
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
            timeout=cdk.Duration.minutes(minutes),
        )
        acknowledge(project, {"CB4": "The build has no artifacts: its results are secrets."})
        self.made = start_build(
            self, project=project, tag=hashlib.sha256(digested.encode()).hexdigest()[:16], wait=True
        )
        events.Rule(
            self,
            rule,
            schedule=events.Schedule.rate(cdk.Duration.days(days)),
            targets=[targets.CodeBuildProject(project)],
        )
