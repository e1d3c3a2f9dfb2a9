"""Whether the user can deploy at all: credentials, CDK command line, bootstrapped environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from inference_blueprints import resources, tools
from inference_blueprints.deployment.doctor.patient import Patient
from inference_blueprints.deployment.observation import Observation
from inference_blueprints.errors import UserError

#: `requiresBootstrapStackVersion` of the stacks that aws-cdk-lib 2.275 writes (cloud assembly manifest).
REQUIRED_BOOTSTRAP_VERSION = 6
_BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"


def credentials(patient: Patient) -> Observation:
    """Say whose credentials these are, and whether the blueprint is meant for them.

    Parameters
    ----------
    patient
        Account and blueprint.
    """
    try:
        number = patient.account.number
        patient.account.demand(patient.environment.account)
    except UserError as error:
        return Observation("credentials", "error", str(error), "aws sso login, or export AWS_PROFILE=...")
    return Observation("credentials", "ok", f"account {number}, region {patient.account.region}")


def command_line(_patient: Patient) -> Iterator[Observation]:
    """Find out whether the pinned CDK command line runs.

    Parameters
    ----------
    _patient
        Not needed: the command line is this library's own.
    """
    name = "CDK command line"
    package = json.loads((resources.root() / "package.json").read_text(encoding="utf-8"))
    pinned = package["dependencies"]["aws-cdk"]
    try:
        result = subprocess.run([*tools.cdk(), "--version"], capture_output=True, text=True, check=False)
    except (UserError, OSError) as error:
        yield Observation(name, "error", str(error), "make setup")
        return
    version = result.stdout.split(" ")[0].strip()
    if version == pinned:
        yield Observation(name, "ok", version)
    else:
        found = version or result.stderr.strip()
        yield Observation(name, "error", f"{found} runs, {pinned} is pinned", "make setup")


def bootstrap(patient: Patient) -> Iterator[Observation]:
    """Find out whether account and region are bootstrapped, and recently enough.

    Parameters
    ----------
    patient
        Account and blueprint.
    """
    ssm = patient.account.client("ssm")
    command = f"blueprints bootstrap {patient.name_or_path}"
    try:
        version = int(ssm.get_parameter(Name=_BOOTSTRAP_PARAMETER)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        place = f"account {patient.account.number} has none in {patient.account.region}"
        yield Observation("bootstrap", "error", place, command)
        return
    if version < REQUIRED_BOOTSTRAP_VERSION:
        message = f"version {version} is there, {REQUIRED_BOOTSTRAP_VERSION} is needed"
        yield Observation("bootstrap", "error", message, command)
    else:
        yield Observation("bootstrap", "ok", f"version {version}")
