"""The command that adds up what callers of the front door have used: usage."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inference_blueprints.cli.options import NameOrPath, Output, OutputOption, print_json
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.front_door.usage_records import UsageRow, UsageWindow
    from inference_blueprints.spec.types import Blueprint


class UsageGroup(StrEnum):
    """What rows are told apart by."""

    TEAM = "team"
    KEY = "key"
    PROJECT = "project"
    MODEL = "model"
    USER = "user"


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("usage")(usage)


def usage(
    name_or_path: NameOrPath,
    *,
    by: Annotated[
        list[UsageGroup] | None,
        typer.Option("--by", help="What rows are told apart by, or several times. Default: team."),
    ] = None,
    month: Annotated[
        str | None, typer.Option("--month", metavar="YYYY-MM", help="Default: the present month.")
    ] = None,
    day: Annotated[
        str | None, typer.Option("--day", metavar="YYYY-MM-DD", help="One day instead of a month.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what callers of the front door have used and what it cost, from the usage records."""
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
    from inference_blueprints.operate.front_door.key_administration import front_door_stack
    from inference_blueprints.operate.front_door.usage_records import (
        add_up,
        day_window,
        month_window,
        of_day,
        of_month,
        read_records,
    )
    from inference_contracts.door_names import USAGE_BUCKET_OUTPUT

    blueprint = load_blueprint(name_or_path).blueprint
    name, spec = blueprint.metadata.name, blueprint.spec
    if spec.front_door is None:
        raise UserError(f"{name}: has no front door, which records usage; add spec.frontDoor, and deploy it")
    if month is not None and day is not None:
        raise UserError(f"got --month {month} and --day {day}; allowed is one of them")
    groups = [each.value for each in by or [UsageGroup.TEAM]]
    zone, now = ZoneInfo(spec.front_door.time_zone), datetime.now(UTC)
    window = month_window(month, zone, now) if day is None else day_window(day, zone, now)
    account = Account(spec.environment.region)
    account.demand(spec.environment.account)
    bucket = stack_outputs(account, front_door_stack(name), USAGE_BUCKET_OUTPUT)[USAGE_BUCKET_OUTPUT]
    found = read_records(account, bucket, window.days)
    rows = add_up((of_month if day is None else of_day)(found, window), groups)
    if output is Output.JSON:
        print_json(usage_document(rows, blueprint, window, groups))
    else:
        _show(rows, groups)


def usage_document(
    rows: Sequence[UsageRow], blueprint: Blueprint, window: UsageWindow, groups: Sequence[str]
) -> dict[str, Any]:
    """Return the document of ``--output json``.

    groups: What the rows are told apart by.
    """
    from inference_contracts.door_configuration import NANO

    return {
        "platform": blueprint.metadata.name,
        "from": window.start.isoformat(),
        "to": window.end.isoformat(),
        "requests": sum(row.requests for row in rows),
        "usd": sum(row.nano for row in rows) / NANO,
        "rows": [
            {
                **dict(zip(groups, row.names, strict=True)),
                "requests": row.requests,
                "failed": row.failed,
                "cut": row.cut,
                "inputTokens": row.input_tokens,
                "outputTokens": row.output_tokens,
                "usd": row.usd,
            }
            for row in rows
        ],
    }


def _show(rows: Sequence[UsageRow], groups: Sequence[str]) -> None:
    from inference_blueprints.report.tables import TextTable, print_rows, table_console
    from inference_contracts.door_configuration import NANO

    if not rows:
        print("there are no usage records")
        return
    figures = ("requests", "failed", "cut", "input tokens", "output tokens", "cost, USD")
    cells = [
        (
            *row.names,
            *(f"{number:,}" for number in (row.requests, row.failed, row.cut)),
            *(f"{number:,}" for number in (row.input_tokens, row.output_tokens)),
            f"{row.usd:,.4f}",
        )
        for row in rows
    ]
    print_rows(TextTable("", tuple(groups), figures, tuple(cells)), table_console())
    usd = sum(row.nano for row in rows) / NANO
    print(f"sum: {sum(row.requests for row in rows):,} requests, {usd:,.4f} USD")
