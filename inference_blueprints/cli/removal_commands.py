"""Commands that delete stacks: destroy, prune."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import NameOrPath, Output, OutputOption, print_json, print_progress
from inference_blueprints.report.plan.cells import counted
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

if TYPE_CHECKING:
    from inference_blueprints.operate.ownership.platform_operation import PlatformOperation
    from inference_blueprints.operate.removal.platform_removal import Removal, Retained
    from inference_catalog import ServicePrices

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    app.command("destroy")(destroy)
    app.command("prune")(prune)


def destroy(
    name_or_path: NameOrPath,
    yes: Yes = False,  # noqa: FBT002 - an option
    output: OutputOption = Output.TEXT,
) -> None:
    """Delete a platform, and say what stays and what that costs.

    It also checks that nothing else billable is left.
    """
    target = _target(name_or_path, output)
    with target.operation("destroy") as operation:
        stacks = [stack.name for stack in target.removal.stacks()]
        target.say(f"stacks of {target.platform}: {', '.join(stacks) or 'none'}")
        target.confirm(
            yes,
            f"To delete these stacks and everything in them, type the platform's name ({target.platform})",
        )
        retained = target.removal.destroy()
        operation.forget_platform()
    target.report(stacks, retained)
    target.say(f"{target.platform}: {target.what_stays(retained)}")


def prune(
    name_or_path: NameOrPath,
    yes: Yes = False,  # noqa: FBT002 - an option
    output: OutputOption = Output.TEXT,
) -> None:
    """Delete stacks that the blueprint no longer has.

    On ECS, it also deletes old revisions of task definitions.
    """
    target = _target(name_or_path, output)
    with target.operation("prune"):
        _prune(target, yes=yes)


def _prune(target: _Target, *, yes: bool) -> None:
    """Delete what is left of former blueprints, after a question."""
    revisions = target.removal.old_revisions()
    if revisions:
        target.say(f"inactive revisions of task definitions that nothing uses: {len(revisions)}")
        target.confirm(yes, f"To delete these revisions, type the platform's name ({target.platform})")
        target.say(f"deleted {len(target.removal.delete_revisions(revisions))} revisions")
    unnamed = target.removal.unnamed_stacks()
    if not unnamed:
        target.say(f"{target.platform}: every stack is in the blueprint; nothing to delete")
        target.report([], [])
        return
    names = [stack.name for stack in unnamed]
    target.say(f"no longer in the blueprint: {', '.join(names)}")
    target.confirm(yes, f"To delete these stacks, type the platform's name ({target.platform})")
    target.report(names, target.removal.prune(unnamed))
    target.say(f"{target.platform}: deleted {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class _Target:
    """A platform in an account, and the output for the person who deletes it."""

    platform: str
    account: str
    region: str
    removal: Removal
    services: ServicePrices
    """Prices of what stays."""
    output: Output
    operation: Callable[[str], AbstractContextManager[PlatformOperation]]
    """From the name of a command to a context in which no other operator changes the platform."""

    def say(self, line: str) -> None:
        _say(line, self.output)

    def confirm(self, yes: bool, question: str) -> None:  # noqa: FBT001 - the option's value
        """Ask for the platform's name unless `--yes` was given."""
        if yes:
            return
        if not sys.stdin.isatty():
            raise UserError(
                "nothing was deleted: no terminal to ask for confirmation; add --yes to delete without it"
            )
        if typer.prompt(question, err=self.output is Output.JSON) != self.platform:
            raise UserError("nothing was deleted: the typed name is not the platform's name")

    def what_stays(self, retained: Sequence[Retained]) -> str:
        """Say what a deleted platform still costs."""
        if not retained:
            return "nothing billable is left"
        known = [usd for each in retained if (usd := each.usd_per_month(self.services)) is not None]
        parts = [f"{sum(known):.2f} USD a month for {counted(len(known), 'key')}"] if known else []
        if held := len(retained) - len(known):
            parts.append(f"what {counted(held, 'other resource')} {'holds' if held == 1 else 'hold'}")
        where = f"prices of {self.services.region}, {self.services.date}"
        return (
            f"deleted. What is listed as kept stays and is billed: {' and '.join(parts)} ({where}). "
            "Nothing else billable is left"
        )

    def report(self, deleted: Sequence[str], retained: Sequence[Retained]) -> None:
        """Report the deleted stacks, and the data that the blueprint's dataRemoval keeps."""
        if self.output is Output.JSON:
            print_json(
                {
                    "platform": self.platform,
                    "account": self.account,
                    "region": self.region,
                    "deletedStacks": list(deleted),
                    "retained": [
                        {
                            "stack": each.stack,
                            "type": each.resource_type,
                            "id": each.physical_id,
                            "usdPerMonth": each.usd_per_month(self.services),
                            "usdPerGbMonth": each.usd_per_gb_month(self.services),
                        }
                        for each in retained
                    ],
                }
            )
            return
        for each in retained:
            price = each.price(self.services)
            self.say(f"kept: {each.resource_type} {each.physical_id} of {each.stack}: {price}")


def _target(name_or_path: str, output: Output) -> _Target:
    """Return the blueprint's platform in the blueprint's account."""
    import inference_catalog as catalog
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.ownership.platform_operation import file_identity, platform_operation
    from inference_blueprints.operate.removal.platform_removal import Removal
    from inference_blueprints.spec.source import find

    loaded, path = load(name_or_path), find(name_or_path)
    blueprint = loaded.blueprint
    environment = blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    name = blueprint.metadata.name
    _say(f"account {account.number}, region {environment.region}", output)
    say = partial(_say, output=output)
    removal = Removal(
        account, name, blueprint=name_or_path, say=say, on_ecs=blueprint.spec.cluster.chosen == "ecs"
    )

    def start(command: str) -> AbstractContextManager[PlatformOperation]:
        identity = file_identity(account, path, loaded.lock)
        return platform_operation(account, name, command=command, file=path, identity=identity, say=say)

    services = catalog.service_prices(environment.region)
    return _Target(name, account.number, environment.region, removal, services, output, start)


def _say(line: str, output: Output) -> None:
    """Print a line, on standard error if standard output is JSON."""
    if output is Output.JSON:
        print_progress(line)
    else:
        print(line)
