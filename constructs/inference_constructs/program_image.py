"""Images of this library's programs. CodeBuild builds them in the account: users need no container engine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from inference_constructs.build_start import start_build
from inference_constructs.code_staging import bundled_by, stage_packages
from inference_constructs.findings import acknowledge
from inference_constructs.observability.kept_log_group import short_log

_BUILD_MINUTES = 20
_KEPT_IMAGES = 10


def _build_specification(dockerfile: str) -> dict[str, Any]:
    """Return what the build does. An existing image is not built again, and none is overwritten."""
    commands = [
        'if aws ecr describe-images --repository-name "$REPOSITORY" --image-ids imageTag="$TAG"; '
        "then exit 0; fi",
        f'docker build --pull --file {dockerfile} --tag "$REGISTRY/$REPOSITORY:$TAG" .',
        'aws ecr get-login-password | docker login --username AWS --password-stdin "$REGISTRY"',
        'docker push "$REGISTRY/$REPOSITORY:$TAG"',
    ]
    return {"version": "0.2", "phases": {"build": {"commands": commands}}}


@jsii.implements(cdk.ILocalBundling)
class _BuildContext:
    """Copies what a Dockerfile needs: the packages, what they import of this project, and its own folder.

    packages: Folders of the packages.
    folder: Folder with ``Dockerfile`` and ``requirements.txt``. The copy keeps its name.
    """

    def __init__(self, packages: Sequence[Path], folder: Path) -> None:
        self._packages = tuple(packages)
        self._folder = folder

    def try_bundle(self, output_dir: str, *, image: Any, **_: Any) -> bool:  # noqa: ARG002 - jsii's
        """Copy everything into the folder."""
        directory = Path(output_dir)
        stage_packages(self._packages, directory)
        (directory / self._folder.name).mkdir()
        for name in ("Dockerfile", "requirements.txt"):
            shutil.copy(self._folder / name, directory / self._folder.name)
        return True


class ProgramImage(Construct):
    """A repository, and a build that pushes a new image when the program's code or packages change.

    Pods retry the pull until the image exists, a few minutes later, so their deployment need not wait. A
    failed build is visible in CodeBuild, and in the pods as `ImagePullBackOff`. An ECS service gives up
    earlier, so its deployment has to wait.

    Parameters
    ----------
    packages
        Folders of the program's packages, at least one.
    folder
        Folder with ``Dockerfile`` and ``requirements.txt``, outside or below the packages.
    encryption_key
        KMS key of the images.
    wait
        Whether the deployment waits until the build has finished.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packages: Sequence[Path],
        folder: Path,
        encryption_key: kms.IKey,
        wait: bool = True,
    ) -> None:
        super().__init__(scope, construct_id)
        self._specification = _build_specification(f"{folder.name}/Dockerfile")
        self.repository = ecr.Repository(
            self,
            "Repository",
            empty_on_delete=True,
            encryption_key=encryption_key,
            image_scan_on_push=True,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            lifecycle_rules=[ecr.LifecycleRule(max_image_count=_KEPT_IMAGES)],
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        source = s3_assets.Asset(
            self,
            "Source",
            path=str(packages[0]),
            asset_hash_type=cdk.AssetHashType.OUTPUT,
            bundling=bundled_by(_BuildContext(packages, folder), *map(str, packages), str(folder)),
        )
        self.tag = source.asset_hash
        #: Dependent resources are deployed after the build has started or, with `wait`, after it has
        #: finished.
        self.build = start_build(
            self,
            project=self._add_project(source, encryption_key),
            tag=self.tag,
            wait=wait,
        )

    @property
    def uri(self) -> str:
        """Address of the image, with its tag."""
        return self.repository.repository_uri_for_tag(self.tag)

    def _add_project(self, source: s3_assets.Asset, encryption_key: kms.IKey) -> codebuild.Project:
        """Add the CodeBuild project that builds and pushes the image."""
        stack = cdk.Stack.of(self)
        log = short_log(self, "Log")
        return codebuild.Project(
            self,
            "Build",
            encryption_key=encryption_key,
            build_spec=codebuild.BuildSpec.from_object(self._specification),
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.STANDARD_7_0,
                compute_type=codebuild.ComputeType.SMALL,
                environment_variables={
                    name: codebuild.BuildEnvironmentVariable(value=value)
                    for name, value in {
                        "REGISTRY": f"{stack.account}.dkr.ecr.{stack.region}.{stack.url_suffix}",
                        "REPOSITORY": self.repository.repository_name,
                    }.items()
                },
                privileged=True,
            ),
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
            role=self._build_role(source, log).without_policy_updates(),
            source=codebuild.Source.s3(bucket=source.bucket, path=source.s3_object_key),
            timeout=cdk.Duration.minutes(_BUILD_MINUTES),
        )

    def _build_role(self, source: s3_assets.Asset, log: logs.LogGroup) -> iam.Role:
        """Allow the build to read only this source, write only its log, and push only to this repository."""
        role = iam.Role(self, "BuildRole", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        ecr.AuthorizationToken.grant_read(role)
        # `Asset.grant_read` would allow reading the assets of all stacks.
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[source.bucket.arn_for_objects(source.s3_object_key)],
            )
        )
        log.grant_write(role)
        self.repository.grant_pull_push(role)
        self.repository.grant(role, "ecr:DescribeImages")
        acknowledge(
            role,
            {"IAM5[Resource::*]": "ecr:GetAuthorizationToken has no resource type (Amazon ECR API)."},
        )
        return role
