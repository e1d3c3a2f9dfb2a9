"""The command that checks an account before a deployment: doctor."""

from __future__ import annotations

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.check_output import show
from inference_blueprints.cli.options import NameOrPath, Output, OutputOption


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("doctor")(doctor)


def doctor(name_or_path: NameOrPath, output: OutputOption = Output.TEXT) -> None:
    """Check the account before a deployment. The exit code is 1 if the deployment would fail."""
    from datetime import UTC, datetime

    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.doctor.doctor_checks import check_environment
    from inference_blueprints.operate.doctor.doctor_context import DoctorContext

    blueprint = load(name_or_path).blueprint
    account = Account(blueprint.spec.environment.region)
    context = DoctorContext(account, blueprint, name_or_path, datetime.now(UTC))
    show(check_environment(context), output)
