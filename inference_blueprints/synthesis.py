"""Run the CDK app in a process of its own: its runtime is heavy, and it must see only one blueprint."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from inference_blueprints.resources import root
from inference_blueprints.spec.source import find
from inference_contracts.errors import UserError


def app_command() -> str:
    """Return the command line of the CDK app, as `cdk --app` takes it."""
    return shlex.join([sys.executable, str(root() / "app.py")])


def app_environment(name_or_path: str) -> dict[str, str]:
    """Return the environment in which the CDK app reads one blueprint.

    Parameters
    ----------
    name_or_path
        Name of a shipped blueprint, or path of a YAML file.
    """
    return {**os.environ, "BLUEPRINT": str(find(name_or_path).resolve())}


def demand_folder(directory: Path) -> None:
    """Create a folder for templates, and check that files can be written there.

    Parameters
    ----------
    directory
        The folder; it may exist.

    Raises
    ------
    UserError
        If it is a file, cannot be created, or cannot be written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        reason = "is not a folder" if directory.exists() and not directory.is_dir() else error.strerror
        message = f"--directory {directory}: cannot hold templates: {reason}; choose another folder"
        raise UserError(message) from error


def synthesise(name_or_path: str, directory: Path) -> list[Path]:
    """Write the cloud assembly of a blueprint.

    Parameters
    ----------
    name_or_path
        Name of a shipped blueprint, or path of a YAML file.
    directory
        Folder for the cloud assembly.

    Returns
    -------
    list of Path
        The templates written.

    Raises
    ------
    UserError
        If the app cannot synthesise; its message is the app's own.
    """
    environment = {**app_environment(name_or_path), "CDK_OUTDIR": str(directory.resolve())}
    command = [sys.executable, str(root() / "app.py")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(
            result.stderr.strip() or f"{' '.join(command)} ended with exit code {result.returncode}"
        )
    return stack_templates(directory)


def stack_templates(assembly: Path) -> list[Path]:
    """Return the templates of a cloud assembly. Its folder may have others, of earlier synthesised apps.

    Parameters
    ----------
    assembly
        The folder. Its ``manifest.json`` names the stacks (AWS CDK, cloud-assembly-schema).
    """
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
    return sorted(
        assembly / artifact["properties"]["templateFile"]
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    )
