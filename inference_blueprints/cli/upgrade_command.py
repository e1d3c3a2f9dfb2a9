"""The command that moves a platform to newer releases: upgrade."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.lock_commands import OwnFile
from inference_blueprints.cli.options import ExitCode, Output, OutputOption, print_json
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.check_results import CheckResult
    from inference_blueprints.operate.upgrade.proposal import Proposal, UnfitError
    from inference_blueprints.spec.lock.lock import Change


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("upgrade")(upgrade)


def upgrade(
    file: OwnFile,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="VERSION", help="Kubernetes version, such as 1.36. Default: no change."),
    ] = None,
    pools: Annotated[
        str,
        typer.Option(
            "--pools", metavar="NAME,...", help="Upgrade only the nodes of these pools. Default: all."
        ),
    ] = "",
    apply: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--apply", help="Write the blueprint and its lock, unless a check fails.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show and check an upgrade to this release. --to also changes the Kubernetes version."""
    from inference_blueprints.operate.ownership.platform_operation import (
        demand_owner,
        file_identity,
        platform_operation,
    )
    from inference_blueprints.operate.upgrade.proposal import UnfitError, propose

    try:
        proposal = propose(file, to, [name for name in pools.split(",") if name])
    except UnfitError as error:
        _show_unfit(error, output)
        raise
    account, platform = proposal.account, proposal.blueprint.metadata.name
    identity = file_identity(account, proposal.path, proposal.old)
    if not apply:
        demand_owner(account, platform, file=proposal.path, identity=identity)
        _upgrade(file, proposal, output, apply=False)
        return
    stream = sys.stderr if output is Output.JSON else sys.stdout
    with platform_operation(
        account,
        platform,
        command="upgrade",
        file=proposal.path,
        identity=identity,
        say=lambda line: print(line, file=stream),
    ):
        _upgrade(file, proposal, output, apply=True)


def _upgrade(file: str, proposal: Proposal, output: Output, *, apply: bool) -> None:
    """Check and show an upgrade, and write it if no check finds an error."""
    from inference_blueprints.operate.upgrade.upgrade_checks import check_upgrade

    results = list(check_upgrade(proposal))
    failed = any(result.severity == "error" for result in results)
    if output is Output.JSON:
        _print_json(proposal, results)
    else:
        _print(proposal, results)
    if failed and output is Output.JSON:
        raise typer.Exit(ExitCode.FAILED)
    if failed:
        raise UserError("nothing was written; fix the errors above, and run the command again")
    if apply:
        proposal.write()
    if output is Output.TEXT:
        _print_next(file, proposal, written=apply)


def _print(proposal: Proposal, results: list[CheckResult]) -> None:
    """Print a table of changes, then the results of the checks, then the steps of the deployment."""
    from inference_blueprints.operate.upgrade.upgrade_checks import steps

    _print_changes(proposal.changes)
    for result in results:
        print(result)
    for number, step in enumerate(steps(proposal), 1):
        print(f"{number}. {step}")


def _print_changes(changes: Sequence[Change]) -> None:
    from inference_blueprints.report.tables import TextTable, print_rows, table_console

    rows = [(each.part, each.old or "not pinned", each.new or "not pinned") for each in changes]
    if rows:
        print_rows(TextTable("", ("component", "now", "after the upgrade"), (), tuple(rows)), table_console())


def _show_unfit(error: UnfitError, output: Output) -> None:
    """Print what the upgrade would change; its errors follow on standard error, or stand beside it."""
    if output is Output.TEXT:
        _print_changes(error.changes)
        return
    problems = [each.as_dict() for each in error.problems]
    print_json({"valid": False, "errors": problems, "changes": [asdict(each) for each in error.changes]})
    raise typer.Exit(ExitCode.FAILED) from error


def _print_json(proposal: Proposal, results: list[CheckResult]) -> None:
    from inference_blueprints.operate.changes.process_changes import ProcessResult
    from inference_blueprints.operate.check_results import CheckResult
    from inference_blueprints.operate.upgrade.upgrade_checks import steps

    document = {
        "changes": [asdict(change) for change in proposal.changes],
        "processes": [asdict(each.change) for each in results if isinstance(each, ProcessResult)],
        "observations": [
            {field.name: getattr(each, field.name) for field in fields(CheckResult)} for each in results
        ],
        "steps": steps(proposal),
    }
    print_json(document)


def _print_next(file: str, proposal: Proposal, *, written: bool) -> None:
    """Print the next step."""
    from inference_blueprints.spec.lock.lock import lock_path

    if written:
        print(f"wrote {proposal.path} and {lock_path(proposal.path)}; next: blueprints deploy {file}")
    elif proposal.changes:
        print("nothing was written; run the same command with --apply, then deploy")
    else:
        print("nothing to upgrade: everything has the versions of this release")
