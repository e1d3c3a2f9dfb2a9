"""The command about streaming jobs: streaming redrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.options import (
    ExitCode,
    NameOrPath,
    Output,
    OutputOption,
    print_json,
    print_progress,
)
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.streaming import RedriveReport

app = typer.Typer(help="Work with streaming jobs, which turn events into signals.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the group `streaming` to the command line."""
    root.add_typer(app, name="streaming")


@app.callback()
def streaming() -> None:
    """Work with streaming jobs, which turn events into signals."""


@app.command()
def redrive(
    name_or_path: NameOrPath,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the streaming job.")],
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Ask the model and write signals. Without it, only count.")
    ] = False,
    reasons: Annotated[
        list[str] | None,
        typer.Option("--reason", metavar="REASON", help="Only dead letters of this reason; repeatable."),
    ] = None,
    events: Annotated[
        bool,
        typer.Option("--events", help="Also send events again that the job could not use."),
    ] = False,
    per_second: Annotated[
        float, typer.Option("--per-second", min=0.1, max=1000.0, help="Most requests per second.")
    ] = 5.0,
    since_hours: Annotated[
        float | None,
        typer.Option("--since-hours", min=0.0, help="Only dead letters of the last hours."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Look at so many dead letters at most.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask the model again for dead letters of a job. The exit code is 1 if some fail again."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.streaming import (
        LetterChoice,
        call_function,
        function_names,
        redrive_letters,
        streaming_job,
    )
    from inference_contracts.dead_letters import REASONS
    from inference_contracts.streaming_job import REDRIVE

    unknown = [reason for reason in reasons or () if reason not in REASONS]
    if unknown:
        raise UserError(f"got --reason {', '.join(unknown)}; allowed are {', '.join(REASONS)}")
    blueprint = load_blueprint(name_or_path).blueprint
    name = streaming_job(blueprint, job).name
    environment = blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    function = function_names(account, blueprint.metadata.name)[name][REDRIVE]
    since = 0
    if since_hours is not None:
        since = int((datetime.now(UTC) - timedelta(hours=since_hours)).timestamp() * 1000)
    choice = LetterChoice(tuple(reasons or ()), events, not apply, per_second, since, limit)
    report = redrive_letters(
        lambda event: call_function(account, function, event),
        choice,
        lambda so_far: print_progress(f"{so_far.seen} dead letters seen"),
    )
    show_redrive(report, output, dry_run=not apply)


def show_redrive(report: RedriveReport, output: Output, *, dry_run: bool) -> None:
    """Print what became of dead letters; the exit code is 1 if some failed.

    dry_run: Whether nothing was done.
    Raises typer.Exit if some failed.
    """
    if output is Output.JSON:
        print_json(report.document(dry_run=dry_run))
    else:
        for reason, outcomes in sorted(report.counts.items()):
            words = {**outcomes}
            if dry_run and "redriven" in words:
                words["would be redriven"] = words.pop("redriven")
            print(f"{reason}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(words.items()))}")
        for failure in report.failures:
            print(f"  {failure}")
        if dry_run:
            print("Nothing was changed. Redrive with --apply.")
        elif not report.counts:
            print("There are no dead letters.")
    if report.failed:
        raise typer.Exit(ExitCode.FAILED)
