"""The copy of a model from the Hugging Face Hub to a bucket, for a platform without Kubernetes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from inference_constructs.build_start import start_build
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.observability.kept_log_group import short_log
from inference_constructs.policy_statements import Statement
from inference_constructs.serving.weights_permissions import read_secret, read_weights, write_weights
from inference_runtime import runtime_directory

#: The longest build of CodeBuild (AWS CodeBuild User Guide, "Quotas for AWS CodeBuild").
_LONGEST_MINUTES = 2160
#: Each attempt continues where the last one ended.
_RETRIES = 5
_BUILD_SPECIFICATION = {
    "version": "0.2",
    "env": {"variables": {"HF_HOME": "/tmp/huggingface", "PYTHONUNBUFFERED": "1"}},  # noqa: S108 - in a build
    "phases": {"build": {"commands": ["python3 -m weights.mirror"]}},
}


class WeightsMirrorBuild(Construct):
    """A build in CodeBuild that copies a model below one prefix. The deployment does not wait for it.

    A copy may take hours. A build runs up to 36 hours, costs nothing while it does not run, is tried again
    after a failure, and its project shows every attempt.

    Parameters
    ----------
    image
        Image with Python, huggingface_hub and boto3.
    environment
        Source and destination, in the variables that the program reads.
    s3_prefix
        ``s3://bucket/prefix`` of the files and the manifest; the bucket may be a reference.
    secrets
        Secrets whose whole text is the value of a variable, by variable: the token of a gated model.
    encryption_key
        KMS key of the build's artefacts.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        image: str,
        environment: Mapping[str, str],
        s3_prefix: str,
        secrets: Mapping[str, str],
        encryption_key: kms.IKey,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        program = runtime_directory() / "weights"
        source = s3_assets.Asset(
            self,
            "Source",
            path=str(program.parent),
            exclude=["*", f"!{program.name}", f"!{program.name}/*.py"],
        )
        statements: list[Statement] = [
            *read_weights(stack, s3_prefix, has_manifest=True),
            *write_weights(stack, s3_prefix),
            *(statement for arn in secrets.values() for statement in read_secret(stack, arn)),
        ]
        log = short_log(self, "Log")
        project = codebuild.Project(
            self,
            "Copy",
            auto_retry_limit=_RETRIES,
            build_spec=codebuild.BuildSpec.from_object(_BUILD_SPECIFICATION),
            encryption_key=encryption_key,
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.from_docker_registry(image),
                # The smallest with space for an engine's image.
                compute_type=codebuild.ComputeType.MEDIUM,
                environment_variables=_variables(environment, secrets),
            ),
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
            role=self._role(source, log, statements).without_policy_updates(),
            source=codebuild.Source.s3(bucket=source.bucket, path=source.s3_object_key),
            timeout=cdk.Duration.minutes(_LONGEST_MINUTES),
        )
        start_build(
            self,
            project=project,
            tag=_digest(program, image, environment),
            wait=False,
        )

    def _role(self, source: s3_assets.Asset, log: logs.LogGroup, statements: list[Statement]) -> iam.Role:
        """Allow the build to read this program, and to read and write this copy alone."""
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"),
            inline_policies={
                "Copy": iam.PolicyDocument(
                    statements=[iam.PolicyStatement.from_json(dict(each)) for each in statements]
                )
            },
        )
        # `Asset.grant_read` would allow reading the assets of all stacks.
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[source.bucket.arn_for_objects(source.s3_object_key)],
            )
        )
        log.grant_write(role)
        acknowledge_wildcards(
            role,
            statements,
            "A model is many objects below one prefix. KMS keys can be used only through S3 and Secrets "
            "Manager, and only for these objects.",
        )
        return role


def _variables(
    environment: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, codebuild.BuildEnvironmentVariable]:
    """Return the build's variables. CodeBuild reads secrets when the build starts."""
    plain = {name: codebuild.BuildEnvironmentVariable(value=value) for name, value in environment.items()}
    secret = codebuild.BuildEnvironmentVariableType.SECRETS_MANAGER
    return plain | {
        name: codebuild.BuildEnvironmentVariable(type=secret, value=arn) for name, arn in secrets.items()
    }


def _digest(program: Path, image: str, environment: Mapping[str, str]) -> str:
    """Return a digest of what a copy depends on; a change starts a build, which skips complete files."""
    content = hashlib.sha256()
    for file in sorted(program.glob("*.py")):
        content.update(file.read_bytes())
    known = {name: value for name, value in environment.items() if not cdk.Token.is_unresolved(value)}
    content.update(json.dumps([image, known], sort_keys=True).encode())
    return content.hexdigest()[:32]
