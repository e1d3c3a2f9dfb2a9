"""Builds of AWS CodeBuild that need no container: their commands run as a process of this machine.

Sources: build-spec-ref.html (``phases.build.commands``, ``env.shell``), build-env-ref-env-vars.html
(variables of the project), API Build (buildStatus). Privileged projects build images with Docker, which is
not here: they are recorded as succeeded, as by ministack. The AWS CLI is `aws_command`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ministack.services import codebuild


def register_builds(directory: Path, access: Mapping[str, str]) -> None:
    """Let builds run.

    Parameters
    ----------
    directory
        Folder for programs and logs.
    access
        Variables with the address, region and credentials of AWS.
    """
    programs = directory / "programs"
    programs.mkdir(parents=True)
    aws = programs / "aws"
    aws.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m inference_blueprints.local.emulator.aws_command "$@"\n'
    )
    aws.chmod(0o755)
    codebuild.EXECUTE_BUILDS = True
    codebuild._execute_build = lambda build, project: _execute(build, project, directory, access)


def _execute(build_id: str, project: Mapping[str, Any], directory: Path, access: Mapping[str, str]) -> None:
    build = codebuild._builds[build_id]
    if project.get("environment", {}).get("privilegedMode"):
        codebuild._finish_build(build, "SUCCEEDED")
        return
    build["buildStatus"] = "IN_PROGRESS"
    specification = json.loads(project["source"]["buildspec"])
    commands = specification["phases"]["build"]["commands"]
    variables = {
        each["name"]: each["value"] for each in project["environment"].get("environmentVariables", ())
    }
    path = os.pathsep.join([str(directory / "programs"), os.environ["PATH"]])
    passed = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "TMPDIR", "HOME")}
    log = directory / f"{build_id.replace(':', '-')}.log"
    status = "SUCCEEDED"
    with log.open("ab") as output:
        for command in commands:
            ended = subprocess.run(
                ["/usr/bin/env", "bash", "-c", command],
                env={**passed, **access, **variables, "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
            if ended.returncode:
                status = "FAILED"
                break
    codebuild._finish_build(build, status)
