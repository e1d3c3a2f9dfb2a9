"""The command that checks a platform after a deployment: verify."""

from __future__ import annotations

from typing import Annotated

import typer

from inference_blueprints.cli.added_commands import added_module
from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.check_output import show
from inference_blueprints.cli.options import (
    DEFAULT_RUN_DIRECTORY,
    NameOrPath,
    Output,
    OutputOption,
    RunDirectory,
)
from inference_contracts.errors import UserError


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("verify")(verify)


def verify(
    name_or_path: NameOrPath,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint", metavar="URL", help="Check only this endpoint, such as one of `local up`."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Model behind --endpoint, if the blueprint has several.")
    ] = None,
    *,
    local: Annotated[
        bool, typer.Option("--local", help="Check the platform that `local up --keep` runs on this machine.")
    ] = False,
    run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check a deployed platform. The exit code is 1 if a check finds an error."""
    from inference_blueprints.operate.verify import verification

    loaded = load(name_or_path)
    blueprint = loaded.blueprint
    if local:
        if endpoint is not None or model is not None:
            raise UserError("got --local with --endpoint or --model; --local checks every model of the run")
        show(added_module("local").verify_local(loaded, run_directory), output)
        return
    if endpoint is not None:
        show(iter(verification.verify_endpoint(blueprint, model, endpoint)), output)
        return
    if model is not None:
        raise UserError(
            "got --model without --endpoint; add --endpoint, or remove --model to check every model"
        )
    show(verification.verify(blueprint, name_or_path), output)
