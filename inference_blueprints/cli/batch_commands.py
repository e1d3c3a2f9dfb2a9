"""Commands about batch: token, and batch submit, status, watch, cancel, results, redrive, cost."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.options import ExitCode, NameOrPath, Output, OutputOption, print_json
from inference_blueprints.cli.options import print_progress as _say
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
    from inference_blueprints.operate.batch.jobs import Job
    from inference_blueprints.spec.types import Batch, Blueprint

app = typer.Typer(help="Submit and follow batch jobs.", no_args_is_help=True)
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="ID of the job; `status` lists it.")]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="URL", help="Other address of the API, ending in /v1, for example of a tunnel."
    ),
]
_MAX_LISTED = 1000


def register(root: typer.Typer) -> None:
    """Add this module's commands to the command line.

    root: The command line's root.
    """
    root.command("token")(token)
    root.add_typer(app, name="batch")


def token(name_or_path: NameOrPath, output: OutputOption = Output.TEXT) -> None:
    """Print a token for the batch API. OpenAI clients use it as `api_key`."""
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.batch.batch_api_client import batch_token
    from inference_contracts.batch_limits import ACCEPTED_TOKEN_SECONDS

    blueprint, _ = _described(name_or_path)
    environment = blueprint.spec.environment
    account = Account(environment.region)
    number = environment.account or account.number
    signed = batch_token(
        account.session, platform=blueprint.metadata.name, region=account.region, account=number
    )
    if output is Output.JSON:
        print_json({"token": signed, "expiresInSeconds": ACCEPTED_TOKEN_SECONDS})
        return
    print(signed)
    _say("accepted for 10 minutes, or until the credentials that signed it expire")


@app.command()
def submit(
    name_or_path: NameOrPath,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Requests, one JSON object per line.")],
    *,
    queue: Annotated[
        str | None, typer.Option("--queue", help="Queue of the job. Default: the model's only queue.")
    ] = None,
    window: Annotated[
        str, typer.Option("--window", help="Time limit of the job in hours or days, such as 6h or 2d.")
    ] = "24h",
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="USD", min=0.0, help="Maximum cost of the job.")
    ] = None,
    signal: Annotated[
        str | None, typer.Option("--signal", help="Store the answers as values of this signal of your team.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job ends, like `watch`.")] = False,
    output: OutputOption = Output.TEXT,
    address: Address = None,
) -> None:
    """Upload a file and create a job from it. Prints the job's ID."""
    from inference_blueprints.operate.batch.jobs import JobSubmission
    from inference_blueprints.operate.batch.jobs import submit as submit_file

    blueprint, batch = _described(name_or_path)
    queues = [each.name for each in batch.queues]
    if queue is not None and queue not in queues:
        raise UserError(f"got --queue {queue}; the blueprint's queues are {', '.join(queues)}")
    if not re.fullmatch(r"[1-9]\d{0,3}[hd]", window, re.ASCII):
        raise UserError(f"got --window {window}; allowed are hours or days, such as 6h or 2d")
    store = blueprint.spec.signal_store
    signals = [each.name for each in store.signals] if store else []
    if signal is not None and signal not in signals:
        known = f"signals are {', '.join(signals)}" if signals else "the blueprint has no signals"
        raise UserError(f"got --signal {signal}; {known}")
    api = _api(name_or_path, address)
    job = submit_file(api, JobSubmission(file, window, queue, budget, signal))
    if output is Output.TEXT:
        print(job["id"], flush=True)
    elif not wait:
        print_json(job)
    if wait:
        _watch(api, job["id"], output)


@app.command()
def status(
    name_or_path: NameOrPath,
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="ID of one job. Default: the newest jobs.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=_MAX_LISTED, help="Maximum number of jobs to list.")
    ] = 20,
    output: OutputOption = Output.TEXT,
    address: Address = None,
) -> None:
    """List your team's jobs, or show one job with its errors."""
    from inference_blueprints.operate.batch.jobs import newest, path

    api = _api(name_or_path, address)
    jobs = list(newest(api, limit)) if job is None else [api.get(path(job))]
    if output is Output.JSON:
        print_json(jobs if job is None else jobs[0])
    elif not jobs:
        print("your team has no jobs")
    else:
        _print_table(
            ("job", "queue", "state"),
            ("requests", "failed", "cost, USD", "deadline, UTC"),
            [_row(each) for each in jobs],
        )
        if job is not None:
            _print_errors(jobs[0])


@app.command()
def watch(
    name_or_path: NameOrPath,
    job: JobArgument,
    output: OutputOption = Output.TEXT,
    address: Address = None,
) -> None:
    """Follow a job until it ends. The exit code is 1 unless it is completed."""
    _watch(_api(name_or_path, address), job, output)


@app.command()
def cancel(
    name_or_path: NameOrPath,
    job: JobArgument,
    output: OutputOption = Output.TEXT,
    address: Address = None,
) -> None:
    """Stop a job; finished results are kept."""
    _act(name_or_path, job, "cancel", address, output)


@app.command()
def redrive(
    name_or_path: NameOrPath,
    job: JobArgument,
    output: OutputOption = Output.TEXT,
    address: Address = None,
) -> None:
    """Run the unfinished requests of a job that failed or expired."""
    _act(name_or_path, job, "redrive", address, output)


@app.command()
def results(
    name_or_path: NameOrPath,
    job: JobArgument,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File for the results. Default: standard output."
        ),
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Read the failed lines instead.")] = False,
    address: Address = None,
) -> None:
    """Read a job's results, one JSON object per line."""
    from inference_blueprints.operate.batch.jobs import copy, save
    from inference_blueprints.operate.batch.jobs import results as read_results

    pieces = read_results(_api(name_or_path, address), job, errors=errors)
    if file is None:
        copy(pieces, sys.stdout.buffer)
    else:
        _say(f"wrote {save(pieces, file):,} bytes to {file}")


@app.command()
def cost(
    name_or_path: NameOrPath,
    month: Annotated[
        str | None, typer.Option("--month", metavar="YYYY-MM", help="Month in UTC. Default: this month.")
    ] = None,
    output: OutputOption = Output.TEXT,
    address: Address = None,
) -> None:
    """Show your team's cost in a month and the remaining budget. Rows are per model and queue."""
    from inference_blueprints.operate.batch.jobs import costs_of

    costs = costs_of(_api(name_or_path, address), month)
    if output is Output.JSON:
        print_json(costs)
        return
    rows = [
        (
            each["model"],
            each["queue"],
            *(f"{each[name]:,}" for name in ("jobs", "requests", "failed", "input_tokens", "output_tokens")),
            f"{each['usd']:,.2f}",
        )
        for each in costs["data"]
    ]
    if rows:
        names = ("jobs", "requests", "failed", "input tokens", "output tokens", "cost, USD")
        _print_table(("model", "queue"), names, rows)
    by_all = f"{costs['door_usd']:,.2f} USD by all requests, " if "door_usd" in costs else ""
    print(
        f"{costs['team']}, {costs['month']}: {costs['spent_usd']:,.2f} USD spent, {by_all}"
        f"{costs['running_usd']:,.2f} USD estimated for running jobs, {costs['left_usd']:,.2f} USD left of "
        f"{costs['budget_usd']:,.2f} USD"
    )


def _described(name_or_path: str) -> tuple[Blueprint, Batch]:
    """Return a blueprint and its batch section, without warnings: these matter when it is deployed."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.batch.batch_api_client import batch_section

    blueprint = load_blueprint(name_or_path).blueprint
    return blueprint, batch_section(blueprint)


def _api(name_or_path: str, address: str | None) -> BatchApiClient:
    """Return a client of the platform's batch API."""
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.batch.batch_api_client import BatchApiClient, batch_address, signer

    blueprint, _ = _described(name_or_path)
    platform, environment = blueprint.metadata.name, blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    sign = signer(account.session, region=environment.region)
    return BatchApiClient(address or batch_address(account, platform), sign)


def _act(name_or_path: str, job: str, action: str, address: str | None, output: Output) -> None:
    """Change a job through the API, and print its new state."""
    from inference_blueprints.operate.batch.jobs import path

    changed = _api(name_or_path, address).post(f"{path(job)}/{action}")
    if output is Output.JSON:
        print_json(changed)
    else:
        print(f"{changed['id']}: {changed['status']}")


def _watch(api: BatchApiClient, job_id: str, output: Output) -> None:
    """Show the progress of a job until it ends; a terminal shows one line that changes."""
    from rich.console import Console

    from inference_blueprints.operate.batch.jobs import watch as watch_job

    console = Console(stderr=True, highlight=False, markup=False)
    shown: list[str] = []
    with console.status("") as progress:

        def show(job: Job) -> None:
            line = _progress(job)
            if console.is_terminal:
                progress.update(line)
            elif line not in shown[-1:]:
                _say(line)
            shown.append(line)

        job = watch_job(api, job_id, show)
    if console.is_terminal:
        _say(_progress(job))
    if output is Output.JSON:
        print_json(job)
    else:
        _print_errors(job)
    if job["status"] != "completed":
        raise typer.Exit(ExitCode.FAILED)


def _progress(job: Job) -> str:
    """Return the progress of a job as a line."""
    counts = job["request_counts"]
    figures = f", {counts['completed']:,} of {counts['total']:,} requests" if counts["total"] else ""
    failed = f", {counts['failed']:,} failed" if counts["failed"] else ""
    spent = f", {job['cost_usd']:,.2f} USD" if job["cost_usd"] else ""
    expected = job.get("expected_at") or 0
    late = f", late: expected at {_moment(expected)} UTC" if expected > job["expires_at"] else ""
    return f"{job['id']}: {job['status']}{figures}{failed}{spent}, due {_moment(job['expires_at'])} UTC{late}"


def _print_errors(job: Job) -> None:
    """Print the errors of a job, and the command that prints the failed lines."""
    for error in (job["errors"] or {}).get("data", []):
        line = f"line {error['line']:,}: " if error["line"] else ""
        _say(f"{error['code']}: {line}{error['message']}")
    if job["error_file_id"] is not None:
        _say(f"to read the failed lines: blueprints batch results BLUEPRINT {job['id']} --errors")


def _row(job: Job) -> tuple[str, ...]:
    """Return a job as a row of the table."""
    counts = job["request_counts"]
    return (
        job["id"],
        job["queue"],
        job["status"],
        f"{counts['completed']:,}/{counts['total']:,}" if counts["total"] else "-",
        f"{counts['failed']:,}",
        f"{job['cost_usd']:,.2f}",
        _moment(job["expires_at"]),
    )


def _moment(seconds: int) -> str:
    """Return a time as text."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def _print_table(names: Sequence[str], figures: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    from inference_blueprints.report.tables import TextTable, print_rows, table_console

    print_rows(TextTable("", tuple(names), tuple(figures), tuple(rows)), table_console())
