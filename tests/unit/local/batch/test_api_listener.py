"""The deployed API is found by its stack's output, and the first role of a team speaks for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from inference_blueprints.spec.types import Team
from inference_contracts.errors import UserError
from inference_local.batch.batch_job import find_batch
from inference_local.emulator.emulator import Emulator

ACCOUNT = "arn:aws:iam::123456789012"


class FakeEmulator:
    """Knows one stack."""

    endpoint_url = "http://127.0.0.1:4566"

    def environment(self) -> dict[str, str]:
        return {"AWS_REGION": "us-west-2"}

    def client(self, service: str) -> FakeEmulator:
        assert service == "cloudformation"
        return self

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        assert StackName == "mine-Batch"
        value = "https://a1b2.execute-api.us-west-2.amazonaws.com/prod/v1"
        return {"Stacks": [{"Outputs": [{"OutputKey": "BatchApiAddress", "OutputValue": value}]}]}


def team(name: str, *principals: str) -> Team:
    return Team(name=name, principals=list(principals), monthly_budget_usd=1.0)


def test_the_address_is_the_emulator_s_and_the_first_role_speaks() -> None:
    teams = [team("people", f"{ACCOUNT}:user/jo"), team("ads", f"{ACCOUNT}:user/al", f"{ACCOUNT}:role/Ads")]
    batch = find_batch(cast("Emulator", FakeEmulator()), "mine", teams)
    assert batch.base_url == "http://127.0.0.1:4566/restapis/a1b2/prod/_user_request_/v1"
    assert (batch.platform, batch.team, batch.role) == ("mine", "ads", f"{ACCOUNT}:role/Ads")


def test_teams_of_users_alone_are_refused() -> None:
    with pytest.raises(UserError, match=r"spec\.teams: no team has an IAM role"):
        find_batch(cast("Emulator", FakeEmulator()), "mine", [team("people", f"{ACCOUNT}:user/jo")])
