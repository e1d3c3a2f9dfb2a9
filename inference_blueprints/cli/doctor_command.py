"""The command that looks at an account before a deployment: doctor."""

from __future__ import annotations

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.observations import show
from inference_blueprints.cli.options import NameOrPath, Output, OutputOption


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line.

    Parameters
    ----------
    app
        The command line's root.
    """
    app.command("doctor")(doctor)


def doctor(name_or_path: NameOrPath, output: OutputOption = Output.TEXT) -> None:
    """Look at the account before a deployment; the exit code is 1 if anything would break it."""
    from inference_blueprints.deployment.account import Account
    from inference_blueprints.deployment.doctor.examination import examine
    from inference_blueprints.deployment.doctor.patient import Patient

    blueprint = load(name_or_path).blueprint
    patient = Patient(Account(blueprint.spec.environment.region), blueprint, name_or_path)
    show(examine(patient), output)
