"""The command that gives a platform to another file: take-over."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import NameOrPath, Output, OutputOption, print_json
from inference_contracts.errors import UserError


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("take-over")(take_over)


def take_over(
    name_or_path: NameOrPath,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,  # noqa: FBT002
    output: OutputOption = Output.TEXT,
) -> None:
    """Give the deployed platform of this name to this blueprint.

    This helps if the former blueprint is lost. The former one is refused from then on. No stack changes.
    """
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.ownership.platform_operation import file_identity, platform_operation
    from inference_blueprints.operate.ownership.platform_table import PlatformTable
    from inference_blueprints.operate.versions import keep_lock, kept_lock
    from inference_blueprints.spec.source import find

    loaded = load(name_or_path)
    path, platform = find(name_or_path), loaded.blueprint.metadata.name
    environment = loaded.blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    former = PlatformTable(account).read(platform).owner
    stream = sys.stderr if output is Output.JSON else sys.stdout
    owned = f"belongs to {former.file}, by {former.operator} on {former.since}" if former else "has no owner"
    print(f"{platform} in account {account.number}, region {account.region} {owned}", file=stream)
    if not yes:
        _confirm(platform, output)
    keep_lock(loaded, path)
    identity = file_identity(account, path, kept_lock(path))
    with platform_operation(
        account,
        platform,
        command="take-over",
        file=path,
        identity=identity,
        say=lambda line: print(line, file=stream),
        takes_over=True,
    ):
        pass
    if output is Output.JSON:
        print_json({"platform": platform, "formerFile": former.file if former else None})
    else:
        print(f"{platform} belongs to {path} now; keep its lock with it, also under version control")


def _confirm(platform: str, output: Output) -> None:
    """Ask for the platform's name."""
    if not sys.stdin.isatty():
        raise UserError("nothing was changed: no terminal to ask for confirmation; add --yes")
    question = f"To take this platform over, type its name ({platform})"
    if typer.prompt(question, err=output is Output.JSON) != platform:
        raise UserError("nothing was changed: the typed name is not the platform's name")
