"""Commands that turn a blueprint into CloudFormation and bring it to an account."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import NameOrPath
from inference_blueprints.errors import UserError

CdkArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CDK_ARGUMENTS]...", help="Passed on to the CDK command of the same name."),
]


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line.

    Parameters
    ----------
    app
        The command line's root.
    """
    app.command("synth")(synth)
    for command in (bootstrap, deploy, diff):
        app.command(command.__name__, context_settings={"ignore_unknown_options": True})(command)


def synth(
    name_or_path: NameOrPath,
    directory: Annotated[Path, typer.Option("--directory", help="Folder for the templates.")] = Path(
        "cdk.out"
    ),
) -> None:
    """Write the CloudFormation templates of a blueprint; no account is needed."""
    from inference_blueprints.synthesis import synthesise

    load(name_or_path)
    templates = synthesise(name_or_path, directory)
    print(f"wrote {len(templates)} templates to {directory}: {', '.join(path.name for path in templates)}")


def bootstrap(name_or_path: NameOrPath, cdk_arguments: CdkArguments = None) -> None:
    """Prepare the account and region of a blueprint for the CDK, once before the first `deploy`."""
    _demand_success("bootstrap", _cdk("bootstrap", name_or_path, cdk_arguments or []))


def deploy(name_or_path: NameOrPath, cdk_arguments: CdkArguments = None) -> None:
    """Deploy all stacks of a blueprint with the pinned CDK CLI and the environment's credentials."""
    from rich.console import Console

    from inference_blueprints.deployment.deploy import deploy as deploy_stacks

    _keep_lock(name_or_path)
    deploy_stacks(name_or_path, cdk_arguments or [], Console())


def diff(name_or_path: NameOrPath, cdk_arguments: CdkArguments = None) -> None:
    """Show what `deploy` would change; with --fail the exit code is 1 if that is anything."""
    words = cdk_arguments or []
    code = _cdk("diff", name_or_path, words)
    if code and "--fail" in words:
        raise typer.Exit(code)
    _demand_success("diff", code)


def _keep_lock(name_or_path: str) -> None:
    """Pin what is deployed before it is, so that a deployment that is repeated later is the same."""
    from inference_blueprints.deployment.locking import is_shipped, keep_lock
    from inference_blueprints.spec.lock.lock import lock_path
    from inference_blueprints.spec.shipped import find

    loaded, path = load(name_or_path), find(name_or_path)
    if not is_shipped(path) and keep_lock(loaded, path):
        print(f"wrote {lock_path(path)}, which pins what is deployed; keep it with the blueprint")


def _cdk(command: str, name_or_path: str, arguments: list[str]) -> int:
    """Run a CDK command on the terminal that this one has, and return its exit code."""
    from inference_blueprints.synthesis import app_command, app_environment
    from inference_blueprints.tools import cdk

    load(name_or_path)
    words = [*cdk(), command, "--app", app_command(), *arguments]
    return subprocess.run(words, env=app_environment(name_or_path), check=False).returncode


def _demand_success(command: str, code: int) -> None:
    if code:
        raise UserError(f"cdk {command} ended with exit code {code}; its own lines above say why")
