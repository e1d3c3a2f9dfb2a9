"""The API of keys: teams administer their own keys, and only these; every act is recorded."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from inference_contracts import key_api_names
from inference_contracts.door_audit import AuditLog
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import key_hash, key_id
from key_api import settings
from key_api.handler import build
from key_api.settings import KeyApiPlatform, KeyApiSettingsError, read_platform
from tests.runtime.batch.api.gateway import proxy_event
from tests.runtime.front_door.keys.key_tables import (
    ACCOUNT,
    BUCKET,
    DAY,
    NOW,
    REGION,
    RULES,
    TABLE,
    TABLE_PROPERTIES,
    audit_records,
)

SEARCH = f"arn:aws:sts::{ACCOUNT}:assumed-role/Search/anna"
ADVERTS = f"arn:aws:sts::{ACCOUNT}:assumed-role/Adverts/otto"
NOBODY = f"arn:aws:sts::{ACCOUNT}:assumed-role/Nobody/eve"
WEB: dict[str, Any] = {"name": "web"}


@dataclass
class Answered:
    """A response."""

    status: int
    document: dict[str, Any]
    headers: dict[str, Any]

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["error"]
        return found


class Api:
    """The function behind API Gateway, which has checked who signed."""

    def __init__(self, platform: KeyApiPlatform) -> None:
        self.platform = platform
        self.now = float(NOW)

    def ask(
        self,
        principal: str | None,
        method: str,
        path: str,
        body: Any = None,
        change: Callable[[dict[str, Any]], object] = lambda _: None,
        **query: str,
    ) -> Answered:
        event = proxy_event(method, f"/iam/v1{path}", query=query)
        event["requestContext"]["identity"]["userArn"] = principal
        event["body"] = body if body is None or isinstance(body, str) else json.dumps(body)
        change(event)
        context: Any = None
        answer = build(self.platform, lambda: self.now).resolve(event, context)
        return Answered(answer["statusCode"], json.loads(answer["body"]), answer["multiValueHeaders"])

    def made(self, principal: str = SEARCH, **facts: Any) -> dict[str, Any]:
        answered = self.ask(principal, "POST", "/keys", {**WEB, **facts})
        assert answered.status == 201, answered.document
        return answered.document


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        dynamodb: Any = boto3.client("dynamodb", region_name=REGION)
        dynamodb.create_table(**TABLE_PROPERTIES)
        s3: Any = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        audit = AuditLog(s3, BUCKET, RULES.platform)
        yield Api(KeyApiPlatform(KeyTable(dynamodb, TABLE), audit, RULES))


def _records(api: Api) -> list[Any]:
    return audit_records(api.platform.audit.client)


def test_a_key_of_the_callers_team(api: Api) -> None:
    answered = api.ask(SEARCH, "POST", "/keys", {**WEB, "models": ["qwen3"], "days": 2, "project": "shop"})
    made = answered.document
    stored = api.platform.table.get(made["id"])
    assert stored is not None
    assert key_id(made["secret"]) == made["id"]
    assert stored.hashes == (key_hash(made["secret"]),)
    assert (stored.team, stored.project, stored.models) == ("search", "shop", ("qwen3",))
    assert (stored.created_by, stored.expires) == (SEARCH, NOW + 2 * DAY)
    # A secret in a cache on the way.
    assert answered.headers["Cache-Control"] == ["no-store"]


def test_limits_of_a_key(api: Api) -> None:
    made = api.made(
        budget={"usdPerDay": 1.5, "requestsPerMinute": 60, "requestsAtOnce": 4, "usdPerMonth": None}
    )
    stored = api.platform.table.get(made["id"])
    assert stored is not None
    assert stored.budget is not None
    assert (stored.budget.nano_per_day, stored.budget.requests_per_minute) == (1_500_000_000, 60)
    assert (stored.budget.requests_at_once, stored.budget.nano_per_month) == (4, None)
    assert made["budget"]["requestsAtOnce"] == 4


def test_secrets_are_shown_once(api: Api) -> None:
    made = api.made()
    for path in ("/keys", f"/keys/{made['id']}"):
        shown = json.dumps(api.ask(SEARCH, "GET", path).document)
        assert made["secret"] not in shown
        assert key_hash(made["secret"])[:16] not in shown


def test_a_key_is_rotated_and_revoked(api: Api) -> None:
    made = api.made()
    rotated = api.ask(SEARCH, "POST", f"/keys/{made['id']}/rotate", {"overlapHours": 1})
    assert rotated.status == 200
    assert rotated.document["secret"] != made["secret"]
    assert rotated.document["oldSecretUntil"] is not None
    assert api.ask(SEARCH, "POST", f"/keys/{made['id']}/rotate").status == 409
    assert api.ask(SEARCH, "POST", f"/keys/{made['id']}/rotate", {"again": True}).status == 200
    for _ in range(2):
        revoked = api.ask(SEARCH, "DELETE", f"/keys/{made['id']}")
        assert (revoked.status, revoked.document["state"]) == (200, "revoked")
    assert api.ask(SEARCH, "GET", "/keys").document == {"keys": []}
    assert len(api.ask(SEARCH, "GET", "/keys", all="true").document["keys"]) == 1


def test_another_teams_key_is_as_unknown_as_one_that_does_not_exist(api: Api) -> None:
    # An answer that tells a stranger which identifiers exist, or an act on another team's key.
    made = api.made()
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        theirs = api.ask(ADVERTS, method, f"/keys/{made['id']}{path}")
        unknown = api.ask(ADVERTS, method, f"/keys/000000000000{path}")
        assert (theirs.status, unknown.status) == (404, 404)
        message = theirs.error["message"].replace(made["id"], "000000000000")
        assert message == unknown.error["message"]
    assert api.ask(ADVERTS, "GET", "/keys", all="true").document == {"keys": []}
    assert len(_records(api)) == 2


def test_a_key_for_another_team_is_refused(api: Api) -> None:
    answered = api.ask(ADVERTS, "POST", "/keys", {**WEB, "team": "search"})
    assert (answered.status, answered.error["code"]) == (400, "invalid_value")
    assert "team: got 'search', allowed are adverts" in answered.error["message"]
    assert _records(api) == []


@pytest.mark.parametrize(
    "principal",
    [
        *(NOBODY, None, ""),
        # The same role name in another account, and a user of a role's name.
        "arn:aws:sts::999999999999:assumed-role/Search/anna",
        f"arn:aws:iam::{ACCOUNT}:user/Search",
        f"arn:aws:iam::{ACCOUNT}:root",
    ],
)
def test_who_belongs_to_no_team_gets_nothing(api: Api, principal: str | None) -> None:
    made = api.made()
    for method, path in (("POST", "/keys"), ("GET", "/keys"), ("DELETE", f"/keys/{made['id']}")):
        answered = api.ask(principal, method, path, WEB)
        assert (answered.status, answered.error["code"]) == (403, "no_team")
    stored = api.platform.table.get(made["id"])
    assert stored is not None
    assert stored.revoked is None


def test_a_forged_principal_in_a_header_or_body_is_ignored(api: Api) -> None:
    def forge(event: dict[str, Any]) -> None:
        event["headers"] = {"x-amz-caller": SEARCH, "principal": SEARCH}
        event["requestContext"]["authorizer"] = {"principal": SEARCH}

    assert api.ask(NOBODY, "GET", "/keys", change=forge).status == 403


def test_each_act_names_the_session_that_did_it(api: Api) -> None:
    made = api.made()
    api.now += 1
    api.ask(SEARCH, "DELETE", f"/keys/{made['id']}")
    records = _records(api)
    assert {(each.actor, each.way, each.team) for each in records} == {(SEARCH, "api", "search")}
    assert [each.act for each in records] == ["create", "create", "revoke", "revoke"]


def test_all_wrong_fields_are_named_at_once(api: Api) -> None:
    body = {
        "name": 5,
        "models": "qwen3",
        "days": True,
        "secret": "mine",
        "budget": {"usdPerDay": "1", "tokensPerMinute": 1.5, "usd": 1},
    }
    answered = api.ask(SEARCH, "POST", "/keys", body)
    assert (answered.status, answered.error["type"]) == (400, "invalid_request_error")
    fields = [each.partition(":")[0] for each in answered.error["message"].split("; ") if ":" in each]
    assert {"name", "models", "days", "secret", "budget.usdPerDay", "budget.tokensPerMinute"} <= {*fields}
    assert "budget.usd: is unknown" in answered.error["message"]
    assert _records(api) == []


@pytest.mark.parametrize("body", ["[]", "{", '"x"', "NaN", '{"budget": {"usdPerDay": NaN}}', "[" * 100_000])
def test_a_body_that_is_no_object(api: Api, body: str) -> None:
    assert api.ask(SEARCH, "POST", "/keys", body).status == 400


def test_a_body_in_base64_that_is_none(api: Api) -> None:
    def encoded(event: dict[str, Any]) -> None:
        event["isBase64Encoded"] = True

    assert api.ask(SEARCH, "POST", "/keys", "%%%", encoded).status == 400
    body = base64.b64encode(json.dumps(WEB).encode()).decode()
    assert api.ask(SEARCH, "POST", "/keys", body, encoded).status == 201


def test_a_failure_of_aws_says_whether_to_repeat(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    api.platform = replace(api.platform, audit=AuditLog(_Failing("SlowDown"), BUCKET, "chat"))
    assert api.ask(SEARCH, "POST", "/keys", WEB).status == 503
    api.platform = replace(api.platform, audit=AuditLog(_Failing("AccessDenied"), BUCKET, "chat"))
    answered = api.ask(SEARCH, "POST", "/keys", WEB)
    assert (answered.status, answered.error["message"]) == (500, "The platform failed; its log says why.")
    assert "AccessDenied" in caplog.text
    assert list(api.platform.table.all()) == []


class _Failing:
    """A client of S3 that fails."""

    def __init__(self, code: str) -> None:
        self._code = code

    def put_object(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "PutObject")


def test_unknown_paths_and_methods(api: Api) -> None:
    for method, path in (("PUT", "/keys"), ("GET", "/other"), ("POST", "/keys/x/revive")):
        answered = api.ask(SEARCH, method, path)
        assert (answered.status, answered.error["code"]) == (404, "unknown_url")


def test_settings_name_everything_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(KeyApiSettingsError, match="KEY_API_AUDIT_BUCKET, KEY_API_RULES"):
        read_platform({key_api_names.TABLE: TABLE})
    (tmp_path / "rules.json").write_text(RULES.to_json())
    monkeypatch.setattr(settings, "_CODE", tmp_path)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    names = (key_api_names.TABLE, key_api_names.AUDIT_BUCKET, key_api_names.RULES)
    found = read_platform(dict(zip(names, (TABLE, BUCKET, "rules.json"), strict=True)))
    assert (found.rules, found.audit.bucket, found.table.name) == (RULES, BUCKET, TABLE)
