"""The role with which API Gateway writes logs: one setting per account and region, which APIs need."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.aws.account_roles import API_LOG_ROLE, ensure_api_log_role
from inference_blueprints.operate.doctor import access_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.resources import blueprints_directory

Make = Callable[..., DoctorContext]


@pytest.fixture(autouse=True)
def attached(account: Account) -> list[str]:
    """Return the ARNs of attached policies. moto would need seconds to load those that AWS manages."""
    arns: list[str] = []

    def attach(params: dict[str, Any], **_options: object) -> tuple[object, object]:
        arns.append(params["body"]["PolicyArn"])
        return SimpleNamespace(status_code=200), {}

    account.client("iam").meta.events.register_first("before-call.iam.AttachRolePolicy", attach)
    return arns


class ApiSettings:
    """The settings of API Gateway in one region, in place of moto's.

    role: ARN of the role in the settings; None if there is none.
    refusals: Updates that it refuses first, as API Gateway does while a new role is not known everywhere.
    """

    def __init__(self, account: Account, *, role: str | None = None, refusals: int = 0) -> None:
        self.role = role
        self.updates = 0
        self._refusals = refusals
        for operation in ("GetAccount", "UpdateAccount"):
            event = f"before-call.api-gateway.{operation}"
            account.client("apigateway").meta.events.register_first(event, self)

    def __call__(self, params: dict[str, Any], **_options: object) -> tuple[object, object]:
        if params["method"] == "PATCH":
            self.updates += 1
            if self.updates <= self._refusals:
                message = "The role ARN does not have required permissions configured."
                refusal = {"Error": {"Code": "BadRequestException", "Message": message}}
                return SimpleNamespace(status_code=400), refusal
            [operation] = json.loads(params["body"])["patchOperations"]
            assert (operation["op"], operation["path"]) == ("replace", "/cloudwatchRoleArn")
            self.role = operation["value"]
        settings = {"cloudwatchRoleArn": self.role} if self.role else {}
        return SimpleNamespace(status_code=200), settings


def with_batch(spec: dict[str, Any]) -> None:
    document = yaml.safe_load((blueprints_directory() / "batch-g6e.yaml").read_text())
    spec.clear()
    spec.update(document["spec"])


def with_keys(spec: dict[str, Any]) -> None:
    document = yaml.safe_load((blueprints_directory() / "front-door.yaml").read_text())
    spec.clear()
    spec.update(document["spec"])


@pytest.mark.parametrize("change", [with_batch, with_keys])
def test_the_stages_of_apis_need_the_role(
    make_context: Make, account: Account, change: Callable[[dict[str, Any]], None]
) -> None:
    ApiSettings(account)
    context = make_context(change)
    (finding,) = access_checks.api_logging(context)
    assert finding.severity == "error"
    assert finding.command == "blueprints bootstrap a.yaml"
    assert [ensure_api_log_role(account), ensure_api_log_role(account)] == [True, False]
    (finding,) = access_checks.api_logging(context)
    assert finding.severity == "ok"
    assert finding.message.endswith(f":role/{API_LOG_ROLE}")


def test_the_role_may_write_logs_and_only_api_gateway_assumes_it(
    account: Account, attached: list[str]
) -> None:
    ApiSettings(account)
    ensure_api_log_role(account)
    assert attached == ["arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"]
    [trusted] = account.client("iam").get_role(RoleName=API_LOG_ROLE)["Role"]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    assert trusted["Principal"] == {"Service": "apigateway.amazonaws.com"}


def test_a_role_that_somebody_has_set_stays(account: Account) -> None:
    settings = ApiSettings(account, role="arn:aws:iam::123456789012:role/team")
    assert not ensure_api_log_role(account)
    assert settings.updates == 0


def test_a_second_region_uses_the_same_role(account: Account) -> None:
    here = ApiSettings(account)
    assert ensure_api_log_role(account)
    first, here.role = here.role, None
    assert ensure_api_log_role(account)
    assert here.role == first


def test_a_role_that_api_gateway_cannot_assume_yet_is_set_again(account: Account) -> None:
    settings = ApiSettings(account, refusals=2)
    assert ensure_api_log_role(account)
    assert settings.updates == 3
    assert settings.role


def test_a_role_that_stays_refused_is_an_error(account: Account) -> None:
    settings = ApiSettings(account, refusals=100)
    with pytest.raises(account.client("apigateway").exceptions.BadRequestException):
        ensure_api_log_role(account)
    assert settings.role is None


def test_without_batch_nobody_asks(make_context: Make) -> None:
    assert list(access_checks.api_logging(make_context())) == []
