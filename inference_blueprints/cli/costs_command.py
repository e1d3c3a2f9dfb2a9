"""The command that divides the cost of nodes among models and teams: costs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inference_blueprints.cli.options import NameOrPath, Output, OutputOption, print_json
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.attributed_costs import AttributedCosts, DoorShares
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.spec.types import Blueprint

_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M"]
_METAVAR = "YYYY-MM-DD[THH:MM]"


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("costs")(costs)


def costs(
    name_or_path: NameOrPath,
    start: Annotated[
        datetime,
        typer.Option(
            "--from",
            formats=_FORMATS,
            metavar=_METAVAR,
            help="Start in UTC, a full hour, as 2026-11-01.",
        ),
    ],
    end: Annotated[
        datetime,
        typer.Option("--to", formats=_FORMATS, metavar=_METAVAR, help="End in UTC, a full hour too."),
    ],
    rates: Annotated[
        Path | None,
        typer.Option(
            "--rates", help="Your own prices, also for spot and reserved capacity.", metavar="FILE.yaml"
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what nodes cost in a time, by model and team. What is not known is unattributed."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.attributed_costs import attributed_costs, batch_tokens
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.batch.batch_api_client import signer
    from inference_blueprints.report.pricing.rates import (
        load_rates,
        node_rate,
        pools_without_price,
        prices_for,
    )
    from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql

    blueprint = load_blueprint(name_or_path).blueprint
    name, spec = blueprint.metadata.name, blueprint.spec
    if spec.observability is None:
        raise UserError(f"{name} has no section 'observability', so CloudWatch has none of its metrics")
    start, end = full_hours(start, end)
    region = spec.environment.region
    own = load_rates(rates, region) if rates else None
    prices = prices_for(region, own)
    account = Account(region)
    account.demand(spec.environment.account)
    client = account.client("cloudwatch")
    sign = signer(account.session, region=region, service="monitoring")
    found = attributed_costs(
        CloudWatchPromql(client.meta.endpoint_url, sign, failure=UserError).range,
        name,
        batch=batch_tokens(
            account,
            name,
            teams=[team.name for team in spec.teams],
            models=[model.name for model in spec.models],
            start=start,
            end=end,
        ),
        start=start,
        end=end,
        rate=node_rate(prices, spec.pools) if own else None,
        door=_door_shares(blueprint, account, start, end),
    )
    unpriced = pools_without_price(prices, spec.pools)
    if output is Output.JSON:
        print_json(costs_document(found, name, start, end, unpriced))
    else:
        _show(found, unpriced)


def _door_shares(blueprint: Blueprint, account: Account, start: datetime, end: datetime) -> DoorShares | None:
    """Return what callers of the front door used, from the usage records. None without a front door."""
    from inference_blueprints.operate.attributed_costs import door_shares
    from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
    from inference_blueprints.operate.front_door.key_administration import front_door_stack
    from inference_blueprints.operate.front_door.usage_records import UsageWindow, of_time, read_records
    from inference_blueprints.serving.plan import build_plan
    from inference_contracts.door_names import USAGE_BUCKET_OUTPUT

    if blueprint.spec.front_door is None:
        return None
    door = build_plan(blueprint).front_door
    models = {each.name: each.model for each in door.clusters} if door else {}
    stack = front_door_stack(blueprint.metadata.name)
    bucket = stack_outputs(account, stack, USAGE_BUCKET_OUTPUT)[USAGE_BUCKET_OUTPUT]
    records = read_records(account, bucket, UsageWindow(start, end).days)
    return door_shares(of_time(records, start, end), models)


def full_hours(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Return a time in UTC. Raises UserError if it does not consist of full hours of the past."""
    from datetime import UTC

    start, end = start.replace(tzinfo=UTC), end.replace(tzinfo=UTC)
    for option, time in (("--from", start), ("--to", end)):
        if time.minute:
            raise UserError(f"got {option} {time:%Y-%m-%dT%H:%M}; allowed are full hours")
    if start >= end:
        raise UserError(f"got --from {start:%Y-%m-%dT%H:%M}, which is not before --to {end:%Y-%m-%dT%H:%M}")
    if end > datetime.now(UTC):
        raise UserError(f"got --to {end:%Y-%m-%dT%H:%M} UTC, which is in the future")
    return start, end


def costs_document(
    found: AttributedCosts, platform: str, start: datetime, end: datetime, unpriced: list[str]
) -> dict[str, Any]:
    """Return the document of ``--output json``.

    unpriced: Pools without a known price.
    """
    return {
        "platform": platform,
        "from": start.isoformat(),
        "to": end.isoformat(),
        "nodesUsd": found.nodes_usd,
        "rowsUsd": found.rows_usd,
        "hours": found.hours,
        "hoursWithNodes": found.hours_with_nodes,
        "poolsWithoutPrice": unpriced,
        "nodesWithoutPrice": [
            {
                "pool": nodes.pool,
                "instanceType": nodes.instance_type,
                "purchase": nodes.purchase,
                "nodeHours": nodes.node_hours,
            }
            for nodes in found.unpriced
        ],
        "rows": [
            {
                "model": row.model,
                "team": row.team,
                "outputTokens": row.output_tokens,
                "usd": row.usd,
                "usdPerMillionTokens": row.usd_per_million_tokens,
                "chargedUsd": row.charged_usd,
            }
            for row in found.rows
        ],
    }


def _show(found: AttributedCosts, unpriced: list[str]) -> None:
    from inference_blueprints.report.tables import TextTable, print_rows, table_console

    has_door = any(row.charged_usd is not None for row in found.rows)
    rows = [
        (
            row.model,
            row.team or "-",
            f"{row.output_tokens:,.0f}",
            f"{row.usd:,.2f}",
            "-" if row.usd_per_million_tokens is None else f"{row.usd_per_million_tokens:,.2f}",
            *(() if not has_door else ("-" if row.charged_usd is None else f"{row.charged_usd:,.2f}",)),
        )
        for row in found.rows
    ]
    figures = (
        *("output tokens", "cost, USD", "USD per million tokens"),
        *(("charged, USD",) if has_door else ()),
    )
    print_rows(TextTable("", ("model", "team"), figures, tuple(rows)), table_console())
    print(f"sum: {found.rows_usd:,.2f} USD; the nodes cost {found.nodes_usd:,.2f} USD")
    if found.hours_with_nodes < found.hours:
        print(
            f"CloudWatch has a cost of nodes for {found.hours_with_nodes:,.1f} of {found.hours:,.1f} hours; "
            "in the others there were no nodes, or no metrics"
        )
    for nodes in found.unpriced:
        print(
            f"unattributed: {nodes.node_hours:,.1f} hours of {nodes.instance_type} ({nodes.purchase}) in the "
            f"pool {nodes.pool} have no known price and are in no sum; add the price to the file of --rates"
        )
    if unpriced:
        print(f"pools without a known price, which are left out: {', '.join(unpriced)}")
