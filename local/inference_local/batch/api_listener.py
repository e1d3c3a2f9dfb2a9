"""Finds the emulated batch API and creates tokens for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import boto3

from inference_blueprints.operate.batch.batch_api_client import batch_token
from inference_blueprints.spec.types import Team
from inference_contracts.batch_names import API_OUTPUT
from inference_contracts.errors import UserError
from inference_local.emulator.emulator import Emulator
from inference_local.run_state import RunningBatch

_SESSION = "local"


def find_batch(emulator: Emulator, platform: str, teams: Sequence[Team]) -> RunningBatch:
    """Return the address of the deployed batch API, and who submits jobs.

    emulator: The emulator that the platform is deployed to.
    teams: Teams that may submit jobs. The first team with a role submits them.
    Raises UserError if no team has a role. The emulator issues credentials only for roles.
    """
    submitter = _submitter(teams)
    if submitter is None:
        raise UserError(
            "spec.teams: no team has an IAM role in 'principals', and the emulator supports only roles; "
            "add one, such as arn:aws:iam::123456789012:role/Ads"
        )
    team, role = submitter
    (stack,) = emulator.client("cloudformation").describe_stacks(StackName=f"{platform}-Batch")["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    address = urlsplit(outputs[API_OUTPUT])
    api = (address.hostname or "").partition(".")[0]
    stage, version = address.path.strip("/").split("/")
    return RunningBatch(
        base_url=f"{emulator.endpoint_url}/restapis/{api}/{stage}/_user_request_/{version}",
        platform=platform,
        team=team,
        role=role,
        environment=emulator.environment(),
    )


def local_token(batch: RunningBatch) -> str:
    """Return a token of the team. It is valid for fifteen minutes.

    batch: The batch API.
    """
    account = _session(
        batch, batch.environment["AWS_ACCESS_KEY_ID"], batch.environment["AWS_SECRET_ACCESS_KEY"]
    )
    client = account.client("sts", endpoint_url=batch.environment["AWS_ENDPOINT_URL"])
    credentials = client.assume_role(RoleArn=batch.role, RoleSessionName=_SESSION)["Credentials"]
    team = _session(
        batch, credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"]
    )
    number = client.get_caller_identity()["Account"]
    return batch_token(team, platform=batch.platform, region=batch.environment["AWS_REGION"], account=number)


def _session(batch: RunningBatch, *credentials: Any) -> boto3.Session:
    return boto3.Session(*credentials, region_name=batch.environment["AWS_REGION"])


def _submitter(teams: Sequence[Team]) -> tuple[str, str] | None:
    """Return the first team that has a role, and the role."""
    return next(
        ((team.name, arn) for team in teams for arn in team.principals if ":role/" in arn),
        None,
    )
