"""Commands that take stacks away: destroy, prune."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import NameOrPath
from inference_blueprints.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.deployment.deletion import Retained
    from inference_blueprints.deployment.removal import Removal

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line.

    Parameters
    ----------
    app
        The command line's root.
    """
    app.command("destroy")(destroy)
    app.command("prune")(prune)


def destroy(name_or_path: NameOrPath, yes: Yes = False) -> None:  # noqa: FBT002 - an option
    """Delete the platform, models and nodes first, and prove that nothing billable is left."""
    platform, removal = _removal(name_or_path)
    stacks = [stack.name for stack in removal.stacks()]
    print(f"stacks of {platform}: {', '.join(stacks) or 'none'}")
    _confirm(
        yes, platform, f"To delete them and everything that they run, type the platform's name ({platform})"
    )
    _list_retained(removal.destroy())
    print(f"{platform}: nothing billable is left")


def prune(name_or_path: NameOrPath, yes: Yes = False) -> None:  # noqa: FBT002 - an option
    """Delete the stacks of this platform that the blueprint no longer names."""
    platform, removal = _removal(name_or_path)
    unnamed = removal.unnamed_stacks()
    if not unnamed:
        print(f"{platform}: every stack is one that the blueprint names")
        return
    names = ", ".join(stack.name for stack in unnamed)
    print(f"the blueprint no longer names: {names}")
    _confirm(yes, platform, f"To delete them, type the platform's name ({platform})")
    _list_retained(removal.prune(unnamed))
    print(f"{platform}: deleted {names}")


def _removal(name_or_path: str) -> tuple[str, Removal]:
    """Return the platform's name, and what deletes in the account that the blueprint means."""
    from inference_blueprints.deployment.account import Account
    from inference_blueprints.deployment.removal import Removal

    blueprint = load(name_or_path).blueprint
    environment = blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    name = blueprint.metadata.name
    print(f"account {account.number}, region {environment.region}")
    return name, Removal(account, name, blueprint=name_or_path, say=print)


def _confirm(yes: bool, name: str, question: str) -> None:  # noqa: FBT001 - the option's value
    """Ask for the platform's name unless that was settled before."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(
            "nothing was deleted: there is no terminal to ask at; add --yes to delete without asking"
        )
    if typer.prompt(question) != name:
        raise UserError("nothing was deleted: the name is another one")


def _list_retained(retained: Sequence[Retained]) -> None:
    """Say what the blueprint's dataRemoval keeps."""
    for each in retained:
        print(f"kept: {each.resource_type} {each.physical_id} of {each.stack}")
