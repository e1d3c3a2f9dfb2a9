"""Certificates with which the callers of models, and the models, know each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from inference_constructs.build_start import start_build
from inference_constructs.findings import acknowledge, acknowledge_grants
from inference_constructs.observability.kept_log_group import short_log
from inference_runtime import runtime_directory

#: Life of the authority, and what is left of it when its successor is made, in days.
_AUTHORITY_DAYS: Final = 3650
_AUTHORITY_LEFT_DAYS: Final = 365
#: Life of a certificate, and what is left of it when it is renewed, in days. Between the two are seven daily
#: builds, and all programs read their files again.
_DAYS: Final = 14
_LEFT_DAYS: Final = 7
_BUILD_MINUTES: Final = 30


@dataclass(frozen=True)
class CertifiedIdentity:
    """What a certificate certifies."""

    name: str
    """Name among the identities of the platform."""
    uri: str
    """Its URI, by which it is admitted."""
    host_names: Sequence[str] = ()
    """Host names under which it answers."""
    usage: Literal["server", "client"] = "client"
    """Whether it answers connections, or only makes them."""


class CallerCertificates(Construct):
    """A certificate authority of a platform, and a secret with the certificate of each identity.

    The key of the authority is in a secret that only the build may read. The build runs at each deployment
    that changes something, and every day. Whoever has a certificate reads its secret every few minutes, so
    that nothing starts again when it is renewed.

    AWS Private CA would keep the key of the authority in hardware, for 50 US dollars per month and authority
    in its short-lived mode (https://aws.amazon.com/private-ca/pricing/), and would still need a program that
    asks it for each certificate on ECS: Service Connect's TLS verifies no client certificates (Amazon ECS
    Developer Guide, "Encrypt Amazon ECS Service Connect traffic"). cert-manager runs on Kubernetes only.

    Parameters
    ----------
    platform
        `metadata.name`.
    identities
        Who gets a certificate. Their names are distinct.

    Attributes
    ----------
    made
        Ends when all certificates exist.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, platform: str, identities: Sequence[CertifiedIdentity]
    ) -> None:
        super().__init__(scope, construct_id)
        self._authority = self._add_secret("Authority", "Certificate authority of callers of models")
        self._secrets = {
            each.name: self._add_secret(f"Certificate-{each.name}", f"Certificate of {each.uri}")
            for each in identities
        }
        script = runtime_directory() / "door_certificates" / "issue.py"
        text = script.read_text(encoding="utf-8")
        wanted = [
            {
                "secret": self._secrets[each.name].secret_arn,
                "uri": each.uri,
                "names": list(each.host_names),
                "usage": each.usage,
            }
            for each in identities
        ]
        project = self._add_project(platform, cdk.Stack.of(self).to_json_string(wanted), text)
        described = json.dumps(
            [[each.name, each.uri, list(each.host_names), each.usage] for each in identities]
        )
        self.made = start_build(
            self,
            project=project,
            tag=hashlib.sha256(f"{text}\n{described}".encode()).hexdigest()[:16],
            wait=True,
        )
        events.Rule(
            self,
            "Daily",
            schedule=events.Schedule.rate(cdk.Duration.days(1)),
            targets=[targets.CodeBuildProject(project)],
        )

    @property
    def secret_arns(self) -> Mapping[str, str]:
        """ARN of the secret of each identity, by its name."""
        return {name: secret.secret_arn for name, secret in self._secrets.items()}

    def _add_secret(self, name: str, description: str) -> secretsmanager.Secret:
        secret = secretsmanager.Secret(
            self, name, description=description, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        acknowledge(secret, {"SMG4": "CodeBuild renews the certificates, not a rotation function."})
        return secret

    def _add_project(self, platform: str, identities: str, script: str) -> codebuild.Project:
        log = short_log(self, "Log")
        role = iam.Role(self, "BuildRole", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        grants = [log.grant_write(role)]
        for secret in (self._authority, *self._secrets.values()):
            grants += [secret.grant_read(role), secret.grant_write(role)]
        acknowledge_grants(role, grants, "CodeBuild names its log streams.")
        values = {
            "PLATFORM": platform,
            "AUTHORITY": self._authority.secret_arn,
            "AUTHORITY_DAYS": str(_AUTHORITY_DAYS),
            "AUTHORITY_LEFT_DAYS": str(_AUTHORITY_LEFT_DAYS),
            "IDENTITIES": identities,
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
                    "phases": {"build": {"commands": [f"python3 - <<'PROGRAM'\n{script}\nPROGRAM"]}},
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
