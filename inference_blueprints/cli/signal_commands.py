"""The command about signals: signals get."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.options import ExitCode, NameOrPath, Output, OutputOption, print_json
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.signals import Record

app = typer.Typer(help="Read signals: answers of batch jobs, stored by key.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the group `signals` to the command line."""
    root.add_typer(app, name="signals")


SignalArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of a signal.")]
KeysArgument = Annotated[
    list[str], typer.Argument(metavar="KEY", help="Keys of the signal, such as product IDs.")
]


@app.command()
def get(
    name_or_path: NameOrPath,
    name: SignalArgument,
    keys: KeysArgument,
    *,
    output: OutputOption = Output.TEXT,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", metavar="HOST:PORT", help="Other address of the store, for example of a tunnel."
        ),
    ] = None,
) -> None:
    """Print the newest values of keys. The exit code is 1 if a key has no value or an expired one."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
    from inference_blueprints.operate.signals import (
        STORE_OUTPUTS,
        demand_signal,
        read_signals,
        store_address,
        stores_stack,
    )

    blueprint = load_blueprint(name_or_path).blueprint
    demand_signal(blueprint, name)
    if address is not None and not re.fullmatch(r"\S+:\d{1,5}", address, re.ASCII):
        raise UserError(f"got --address {address}; allowed is HOST:PORT, such as localhost:6379")
    environment = blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    outputs = stack_outputs(account, stores_stack(blueprint.metadata.name), *STORE_OUTPUTS)
    found = read_signals(store_address(outputs, environment.region, tunnel=address), name, keys)
    show_signals(found, keys, output)


def show_signals(found: Mapping[str, Record], keys: Sequence[str], output: Output) -> None:
    """Print signals; the exit code is 1 if one is missing.

    keys: The requested keys.
    Raises typer.Exit if a key has no value.
    """
    missing = [key for key in dict.fromkeys(keys) if key not in found]
    if output is Output.JSON:
        print_json(list(found.values()))
    else:
        for record in found.values():
            _print_record(record)
    for key in missing:
        print(f"{key}: has no value, or its value has expired", file=sys.stderr)
    if missing:
        raise typer.Exit(ExitCode.FAILED)


def _print_record(record: Record) -> None:
    """Print a signal as text."""
    rows = {
        "value": record["value"],
        "model": record["model"],
        "answered": _moment(record["time"]),
        "expires": _moment(record["expires"]),
        "version": record["version"],
        "prompt hash": record["promptHash"],
    }
    print(record["key"])
    for title, value in rows.items():
        first, *others = str(value).splitlines() or [""]
        print(f"  {title:<11}  {first}")
        for line in others:
            print(f"  {'':<11}  {line}")


def _moment(seconds: int) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
