"""The program of streaming jobs. CodeBuild builds its jar, so users need neither Java nor Maven."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from inference_constructs.build_start import start_build
from inference_constructs.code_staging import bundled_by
from inference_constructs.observability.kept_log_group import short_log
from inference_constructs.streaming.streaming_store import StreamingStore
from inference_contracts.request_headers import HEADERS_FILE
from inference_contracts.streaming_job import JOB_PROGRAMS_PREFIX
from inference_runtime import runtime_directory

_BUILD_MINUTES: Final = 14
#: Module of the Maven build that makes the jar.
JOB_MODULE: Final = "enrichment-job"
#: Folder of the Maven build in the sources, as in a checkout: it reads shared files beside itself.
_MAVEN_FOLDER: Final = Path("runtime", "java")
#: Files that the Java programs share with this library, by their paths in the sources. The jar contains them.
_SHARED: Final = {Path("contracts", "inference_contracts", HEADERS_FILE.name): HEADERS_FILE}
#: Builds the jar from the sources.
MAVEN_COMMAND: Final = (
    *("mvn", "--batch-mode", "--quiet", "--file", _MAVEN_FOLDER.as_posix()),
    *("--also-make", "--projects", JOB_MODULE, "-Dmaven.test.skip", "package"),
)
_TARGET: Final = (_MAVEN_FOLDER / JOB_MODULE / "target").as_posix()
#: One object per content of the sources: what exists is not built again, and nothing is overwritten. The
#: image has Maven and this JDK (https://docs.aws.amazon.com/codebuild/latest/userguide/available-runtimes.html).
_BUILD_SPECIFICATION: Final = {
    "version": "0.2",
    "phases": {
        "install": {"runtime-versions": {"java": "corretto17"}},
        "build": {
            "commands": [
                'if aws s3api head-object --bucket "$BUCKET" --key "$PREFIX$TAG.jar"; then exit 0; fi',
                " ".join(MAVEN_COMMAND),
                f"rm -f {_TARGET}/original-*.jar",
                f'aws s3 cp --only-show-errors {_TARGET}/{JOB_MODULE}-*.jar "s3://$BUCKET/$PREFIX$TAG.jar"',
            ]
        },
    },
}
#: Names of folders that are not part of the program: what Maven wrote, and tests.
_LEFT_OUT: Final = frozenset({"target", "test"})


def copy_sources(maven_build: Path, folder: Path) -> None:
    """Copy everything that the build of the jar reads, in the places of a checkout.

    maven_build: Folder of the Maven build.
    folder: Where the copies go.
    """
    files = {_MAVEN_FOLDER / each: maven_build / each for each in _program_files(maven_build)}
    for relative, file in (files | _SHARED).items():
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


def _program_files(maven_build: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(maven_build):
        # Not even looked into: Maven may write there meanwhile.
        names[:] = set(names) - _LEFT_OUT
        yield from (Path(folder, each).relative_to(maven_build) for each in files)


@jsii.implements(cdk.ILocalBundling)
class _Sources:
    """Copies the files of the program."""

    def __init__(self, maven_build: Path) -> None:
        self._maven_build = maven_build

    def try_bundle(self, output_dir: str, *, image: Any, **_: Any) -> bool:  # noqa: ARG002 - jsii's
        """Copy everything into the folder."""
        copy_sources(self._maven_build, Path(output_dir))
        return True


class JobProgram(Construct):
    """The jar of streaming jobs, which a deployment builds when its sources change.

    Parameters
    ----------
    store
        Takes the jar.
    encryption_key
        KMS key of the build.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        store: StreamingStore,
        encryption_key: kms.IKey,
    ) -> None:
        super().__init__(scope, construct_id)
        maven_build = runtime_directory() / "java"
        source = s3_assets.Asset(
            self,
            "Source",
            path=str(maven_build),
            asset_hash_type=cdk.AssetHashType.OUTPUT,
            bundling=bundled_by(_Sources(maven_build)),
        )
        log = short_log(self, "Log")
        project = codebuild.Project(
            self,
            "Build",
            encryption_key=encryption_key,
            build_spec=codebuild.BuildSpec.from_object(_BUILD_SPECIFICATION),
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.STANDARD_7_0,
                compute_type=codebuild.ComputeType.MEDIUM,
                environment_variables={
                    "BUCKET": codebuild.BuildEnvironmentVariable(value=store.bucket_name),
                    "PREFIX": codebuild.BuildEnvironmentVariable(value=JOB_PROGRAMS_PREFIX),
                },
            ),
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
            role=self._build_role(source, store, log).without_policy_updates(),
            source=codebuild.Source.s3(bucket=source.bucket, path=source.s3_object_key),
            timeout=cdk.Duration.minutes(_BUILD_MINUTES),
        )
        #: Key of the jar.
        self.key = f"{JOB_PROGRAMS_PREFIX}{source.asset_hash}.jar"
        #: Applications need the jar when they are created, so they wait for this.
        self.build = start_build(self, project=project, tag=source.asset_hash, wait=True)

    def _build_role(self, source: s3_assets.Asset, store: StreamingStore, log: logs.LogGroup) -> iam.Role:
        """Allow the build to read only this source, and to write only its log and the jars."""
        role = iam.Role(self, "BuildRole", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        # `Asset.grant_read` would allow reading the assets of all stacks.
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[source.bucket.arn_for_objects(source.s3_object_key)],
            )
        )
        log.grant_write(role)
        store.grant_publish_program(role)
        return role
