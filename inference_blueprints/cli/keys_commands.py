"""Commands about the API keys of the front door: keys create, list, rotate, revoke."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.options import NameOrPath, Output, OutputOption, print_json, print_progress

if TYPE_CHECKING:
    from inference_contracts.door_key_acts import KeyChange
    from inference_contracts.door_keys import KeyRecord

app = typer.Typer(help="Make, list, rotate and revoke API keys of the front door.", no_args_is_help=True)
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="ID of the key; `list` shows it.")]


def register(root: typer.Typer) -> None:
    """Add the group `keys` to the command line."""
    root.add_typer(app, name="keys")


@app.command()
def create(
    name_or_path: NameOrPath,
    *,
    team: Annotated[str, typer.Option("--team", help="Team that uses and pays it.")],
    name: Annotated[str, typer.Option("--name", help="What it is for, such as 'search in production'.")],
    project: Annotated[
        str | None,
        typer.Option("--project", help="Project of all its requests. Default: callers name one."),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Public name of a model; may be repeated. Default: all of the team.",
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", help="Its life. Default: 90, or less if the blueprint says so.")
    ] = None,
    usd_per_day: Annotated[
        float | None, typer.Option("--usd-per-day", min=0.0, help="Its own limit of a day, in US dollars.")
    ] = None,
    usd_per_month: Annotated[
        float | None, typer.Option("--usd-per-month", min=0.0, help="The same of a calendar month.")
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option("--requests-per-minute", min=1, help="Most requests in a minute.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option("--tokens-per-minute", min=1, help="Most tokens in a minute.")
    ] = None,
    requests_at_once: Annotated[
        int | None, typer.Option("--requests-at-once", min=1, help="Most requests in progress at once.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Make a key. Its secret is printed on standard output, once."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.front_door.key_administration import (
        demand_possible,
        key_acts,
        refusals_as_errors,
    )
    from inference_contracts.door_key_acts import KeyRequest, key_budget

    request = KeyRequest(
        team=team,
        name=name,
        project=project,
        models=tuple(models) if models else None,
        days=days,
        budget=key_budget(
            usd_per_day=usd_per_day,
            usd_per_month=usd_per_month,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            requests_at_once=requests_at_once,
        ),
    )
    now = time.time()
    blueprint = load_blueprint(name_or_path).blueprint
    with refusals_as_errors(name_or_path):
        demand_possible(blueprint, request)
        change = key_acts(blueprint).create(request, now=now)
    _show(change, output, now)


@app.command("list")
def list_keys(
    name_or_path: NameOrPath,
    *,
    team: Annotated[str | None, typer.Option("--team", help="Only the keys of this team.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also expired and revoked keys.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the keys, the newest first. Secrets are stored nowhere."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.front_door.key_administration import key_acts, refusals_as_errors
    from inference_contracts.door_key_document import key_document

    now = time.time()
    with refusals_as_errors(name_or_path):
        acts = key_acts(load_blueprint(name_or_path).blueprint)
        found = [each for each in acts.list(team=team) if every or each.hashes_at(now)]
    if output is Output.JSON:
        print_json([key_document(each, now) for each in found])
    elif found:
        _print_table(found, now)
    else:
        print("there are no keys")


@app.command()
def rotate(
    name_or_path: NameOrPath,
    key: KeyArgument,
    *,
    overlap_hours: Annotated[
        int | None,
        typer.Option(
            "--overlap-hours",
            help="How long the old secret stays valid. Default: rotationHours of the blueprint.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Replace the newest secret, which was lost, while the old one is valid."
        ),
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Give a key a new secret. The old one stays valid for a time."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.front_door.key_administration import key_acts, refusals_as_errors

    now = time.time()
    with refusals_as_errors(name_or_path):
        acts = key_acts(load_blueprint(name_or_path).blueprint)
        change = acts.rotate(key, now=now, overlap_hours=overlap_hours, again=again)
    _show(change, output, now)


@app.command()
def revoke(name_or_path: NameOrPath, key: KeyArgument, output: OutputOption = Output.TEXT) -> None:
    """End a key for good. All replicas refuse it within 5 seconds."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.front_door.key_administration import key_acts, refusals_as_errors

    now = time.time()
    with refusals_as_errors(name_or_path):
        acts = key_acts(load_blueprint(name_or_path).blueprint)
        change = acts.revoke(key, now=now)
    _show(change, output, now)


def _show(change: KeyChange, output: Output, now: float) -> None:
    """Print a key that was changed: its secret alone on standard output, the rest beside it."""
    from inference_contracts.door_key_acts import shown_time
    from inference_contracts.door_key_document import change_document

    record = change.record
    if output is Output.JSON:
        print_json(change_document(change, now))
    elif change.secret is not None:
        print(change.secret)
    if change.audit_problem is not None:
        print_progress(f"warning: the end of this act could not be recorded: {change.audit_problem}")
    if output is Output.JSON:
        return
    print_progress(f"key {record.id} of team {record.team}: {record.name}")
    if record.revoked is not None:
        print_progress(f"revoked at {shown_time(record.revoked)}; all replicas refuse it within 5 seconds")
        return
    print_progress(f"valid until {shown_time(record.expires)}")
    if len(record.hashes_at(now)) > 1:
        print_progress(f"its old secret is valid until {shown_time(record.old_until)}")
    print_progress("this is the only time that the secret is shown")


def _print_table(found: list[KeyRecord], now: float) -> None:
    from inference_blueprints.report.tables import TextTable, print_rows, table_console
    from inference_contracts.door_key_acts import shown_time
    from inference_contracts.door_key_document import key_state

    rows = [
        (
            each.id,
            each.team,
            each.project or "-",
            f"{each.name} (platform's own)" if each.caller else each.name,
            "all" if each.models is None else ", ".join(each.models),
            key_state(each, now),
            shown_time(each.expires),
        )
        for each in found
    ]
    titles = ("key", "team", "project", "name", "models", "state", "valid until")
    print_rows(TextTable("", titles, (), tuple(rows)), table_console())
