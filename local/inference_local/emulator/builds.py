"""Builds of AWS CodeBuild that need no container: their commands run as a process of this machine.

Sources: build-spec-ref.html (``phases.build.commands``, ``env.shell``, ``env.variables``),
build-env-ref-env-vars.html (variables of the project), API ProjectSource (``location`` of a source in S3: the
bucket, a slash, and the key of a ZIP archive), API Build (buildStatus). Privileged projects build images with
Docker, which is not here: they are recorded as succeeded, as by ministack. The AWS CLI is `aws_command`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError
from ministack.services import codebuild

from inference_local.emulator.ecs.agent.container_command import with_folders


def register_builds(directory: Path, access: Mapping[str, str]) -> None:
    """Let builds run.

    directory: Folder for programs and logs.
    access: Variables with the address, region and credentials of AWS, and of other services that builds ask.
    """
    programs = directory / "programs"
    programs.mkdir(parents=True)
    aws = programs / "aws"
    aws.write_text(f'#!/bin/sh\nexec {sys.executable} -m inference_local.emulator.aws_command "$@"\n')
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in (aws, python):
        program.chmod(0o755)
    codebuild.EXECUTE_BUILDS = True
    codebuild._execute_build = lambda build, project: _execute(build, project, directory, access)


def _execute(build_id: str, project: Mapping[str, Any], directory: Path, access: Mapping[str, str]) -> None:
    build = codebuild._builds[build_id]
    if project.get("environment", {}).get("privilegedMode"):
        codebuild._finish_build(build, "SUCCEEDED")
        return
    build["buildStatus"] = "IN_PROGRESS"
    folder = directory / build_id.replace(":", "-")
    (folder / "tmp").mkdir(parents=True)
    with (folder / "build.log").open("ab") as output:
        specification = json.loads(project["source"]["buildspec"])
        variables = {
            **specification.get("env", {}).get("variables", {}),
            **{
                each["name"]: each["value"] for each in project["environment"].get("environmentVariables", ())
            },
        }
        temporary = {"/tmp": folder / "tmp"}  # noqa: S108 -- the path in a build's image
        environment = {
            **{name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "TMPDIR", "HOME")},
            **access,
            **{name: with_folders(value, temporary) for name, value in variables.items()},
            "PATH": os.pathsep.join([str(directory / "programs"), os.environ["PATH"]]),
        }
        try:
            source = _unpacked(project["source"], folder / "src", access)
        except ClientError as error:
            output.write(f"DOWNLOAD_SOURCE: {error}\n".encode())
            codebuild._finish_build(build, "FAILED")
            return
        succeeded = all(
            subprocess.run(
                ["/usr/bin/env", "bash", "-c", command],
                env=environment,
                cwd=source,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            ).returncode
            == 0
            for command in specification["phases"]["build"]["commands"]
        )
    codebuild._finish_build(build, "SUCCEEDED" if succeeded else "FAILED")


def _unpacked(source: Mapping[str, Any], folder: Path, access: Mapping[str, str]) -> Path:
    """Return the folder in which commands run, with the files of the source, if there is one."""
    folder.mkdir()
    if source["type"] == "S3":
        bucket, _, key = source["location"].partition("/")
        client: Any = boto3.client(
            "s3",
            endpoint_url=access["AWS_ENDPOINT_URL_S3"],
            region_name=access["AWS_REGION"],
            aws_access_key_id=access["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=access["AWS_SECRET_ACCESS_KEY"],
        )
        archive = folder.with_suffix(".zip")
        client.download_file(bucket, key, str(archive))
        with zipfile.ZipFile(archive) as content:
            content.extractall(folder)
    return folder
