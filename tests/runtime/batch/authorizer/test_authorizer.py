"""Tokens as the house makes them, checked as the platform checks them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import boto3
import pytest
import urllib3
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batch.authorizer.caller_identity import CallerIdentity, StsUnavailableError
from batch.authorizer.handler import Authorizer, UnauthorizedError
from inference_blueprints.operate.batch.batch_api_client import batch_token
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_names import TOKEN_AUDIENCE_HEADER, TOKEN_PREFIX, token_audience
from inference_contracts.errors import UserError
from tests.runtime.batch.authorizer.sts import Sts
from tests.runtime.batch.resources import CONFIGURATION, NOBODY, REGION, SEARCH
from tests.runtime.conftest import Pauses

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "secret-of-search"
METHOD = f"arn:aws:execute-api:{REGION}:123456789012:abc123/batch/GET/v1/files"
HOST = f"sts.{REGION}.amazonaws.com"
ACCOUNT = "123456789012"
HERE = {"platform": "chat", "region": REGION, "account": ACCOUNT}
REMEMBERED = 300


@pytest.fixture
def sts() -> Iterator[Sts]:
    with Sts() as running:
        running.knows(KEY, SECRET, SEARCH)
        yield running


@pytest.fixture
def decide(sts: Sts) -> Callable[..., dict[str, Any]]:
    """Ask the authorizer about a token, as if it were some seconds later."""

    def decide(token: str, *, later: float = 0.0, platform: str = "chat") -> dict[str, Any]:
        identity = CallerIdentity(
            urllib3.PoolManager(),
            region=REGION,
            audience=token_audience(ACCOUNT, platform),
            endpoint=sts.endpoint,
        )
        authorizer = Authorizer(
            Configuration.from_json(json.dumps(CONFIGURATION)),
            identity,
            region=REGION,
            remembered_seconds=REMEMBERED,
            clock=lambda: time.time() + later,
        )
        return authorizer.decide(event(f"Bearer {token}"))

    return decide


def event(*authorization: str) -> dict[str, Any]:
    return {
        "type": "REQUEST",
        "methodArn": METHOD,
        "headers": {"authorization": authorization[-1]} if authorization else {},
        "multiValueHeaders": {"authorization": list(authorization)} if authorization else {},
    }


def session(key: str = KEY, secret: str = SECRET) -> boto3.Session:
    return boto3.Session(key, secret, region_name=REGION)


def token_of(address: str) -> str:
    return TOKEN_PREFIX + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def address_of(token: str) -> str:
    content = token.removeprefix(TOKEN_PREFIX)
    return base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)).decode()


def signed(
    *,
    method: str = "GET",
    query: str = "Action=GetCallerIdentity&Version=2011-06-15",
    host: str = HOST,
    region: str = REGION,
    service: str = "sts",
    seconds: int = 900,
    headers: dict[str, str] | None = None,
) -> str:
    """Return a token that is signed as it should be, over what it should perhaps not be."""
    request = AWSRequest(
        method,
        f"https://{host}/?{query}",
        headers={TOKEN_AUDIENCE_HEADER: token_audience(ACCOUNT, "chat")} if headers is None else headers,
    )
    SigV4QueryAuth(Credentials(KEY, SECRET), service, region, expires=seconds).add_auth(request)
    return token_of(request.url)


def test_a_token_of_the_house_is_its_teams(decide: Callable[..., dict[str, Any]], sts: Sts) -> None:
    answer = decide(batch_token(session(), **HERE))

    assert answer == {
        "principalId": "arn:aws:iam::123456789012:role/Search",
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow",
                    "Resource": f"arn:aws:execute-api:{REGION}:123456789012:abc123/batch/*/v1/*",
                }
            ],
        },
        "context": {"principal": SEARCH, "team": "search"},
    }
    assert len(sts.requests) == 1


def test_the_token_of_a_session_is_taken_too(decide: Callable[..., dict[str, Any]], sts: Sts) -> None:
    of_session = boto3.Session(KEY, SECRET, "IQoJb3JpZ2luX2VjEA+/a==", region_name=REGION)

    answer = decide(batch_token(of_session, **HERE))

    assert answer["context"]["team"] == "search"


def test_a_caller_of_no_team_is_told_so(decide: Callable[..., dict[str, Any]], sts: Sts) -> None:
    sts.knows("AKIAOFNOBODYXXXXXXXX", "other", NOBODY)

    answer = decide(batch_token(session("AKIAOFNOBODYXXXXXXXX", "other"), **HERE))

    assert answer["policyDocument"]["Statement"][0]["Effect"] == "Deny"
    assert answer["context"] == {"reason": f"{NOBODY} does not belong to a team of chat"}


def test_a_token_for_another_platform_is_refused_by_sts(
    decide: Callable[..., dict[str, Any]], sts: Sts
) -> None:
    with pytest.raises(UnauthorizedError):
        decide(batch_token(session(), platform="other", region=REGION, account=ACCOUNT))
    assert len(sts.requests) == 1


def test_a_token_for_a_platform_of_that_name_in_another_account_is_refused_by_sts(
    decide: Callable[..., dict[str, Any]], sts: Sts
) -> None:
    """Whoever gets it there cannot use it here. Neither can a token of a client before this rule."""
    elsewhere = batch_token(session(), platform="chat", region=REGION, account="999999999999")
    before = signed(headers={TOKEN_AUDIENCE_HEADER: "chat"})
    for token in (elsewhere, before):
        with pytest.raises(UnauthorizedError):
            decide(token)
    assert len(sts.requests) == 2


def test_a_token_ends_before_the_answer_about_it_is_forgotten(
    decide: Callable[..., dict[str, Any]], sts: Sts
) -> None:
    token = batch_token(session(), **HERE)

    assert decide(token, later=900 - REMEMBERED - 60)
    with pytest.raises(UnauthorizedError):
        decide(token, later=900 - REMEMBERED + 60)
    with pytest.raises(UnauthorizedError):
        decide(token, later=-3600)
    assert len(sts.requests) == 1


@pytest.mark.parametrize(
    "token",
    [
        signed(host="sts.eu-west-1.amazonaws.com", region="eu-west-1"),
        signed(host="sts.amazonaws.com", region="us-east-1"),
        signed(host="evil.example"),
        signed(host=f"{HOST}.evil.example"),
        signed(host=f"{HOST}:8443"),
        signed(host=f"evil@{HOST}"),
        signed(region="eu-west-1"),
        signed(service="s3"),
        signed(seconds=901),
        signed(seconds=86400),
        signed(headers={}),
        signed(headers={TOKEN_AUDIENCE_HEADER: token_audience(ACCOUNT, "chat"), "x-more": "1"}),
        signed(query="Action=AssumeRole&Version=2011-06-15"),
        signed(query="Action=GetCallerIdentity&Version=2011-06-14"),
        signed(query="Action=GetCallerIdentity&Version=2011-06-15&RoleArn=x"),
        signed(query="Action=GetCallerIdentity&Version=2011-06-15&action=AssumeRole"),
        token_of(address_of(signed()) + "&Action=GetCallerIdentity"),
        token_of(address_of(signed()) + "#fragment"),
        token_of(address_of(signed()).replace("https://", "http://")),
        token_of(address_of(signed()).replace("/?", "/path?")),
        token_of(address_of(signed()).replace("/?", "/;p?")),
        token_of(address_of(signed()).replace("Action=", "action=")),
        token_of(address_of(signed()).replace("https://", "https:///")),
        token_of(address_of(signed()).replace("https://", "https:\\\\")),
        token_of(address_of(signed()) + "\r\nX-Header: 1"),
        token_of(address_of(signed()) + "&X-Amz-Security-Token=" + quote("a b")),
        token_of(f"https://[{HOST}/?x"),
        signed().removeprefix(TOKEN_PREFIX),
        TOKEN_PREFIX,
        TOKEN_PREFIX + "%%%",
        TOKEN_PREFIX + "A" * 10_000,
        "sk-proj-somebody-pasted-their-key",
        "",
    ],
)
def test_what_is_not_a_token_of_this_platform_never_reaches_sts(
    token: str, decide: Callable[..., dict[str, Any]], sts: Sts
) -> None:
    with pytest.raises(UnauthorizedError, match=r"^Unauthorized$"):
        decide(token)
    assert sts.requests == []


def test_only_one_bearer_token_is_taken(decide: Callable[..., dict[str, Any]], sts: Sts) -> None:
    identity = CallerIdentity(
        urllib3.PoolManager(), region=REGION, audience=token_audience(ACCOUNT, "chat"), endpoint=sts.endpoint
    )
    authorizer = Authorizer(
        Configuration.from_json(json.dumps(CONFIGURATION)), identity, region=REGION, remembered_seconds=300
    )
    bearer = f"Bearer {signed()}"
    for headers in ([], [bearer, bearer], [signed()], [f"Basic {signed()}"]):
        with pytest.raises(UnauthorizedError):
            authorizer.decide(event(*headers))
    assert authorizer.decide(event(bearer))["context"]["team"] == "search"


def test_a_redirect_of_sts_is_not_followed(decide: Callable[..., dict[str, Any]], sts: Sts) -> None:
    sts.instead = (302, {"Location": f"{sts.endpoint}/elsewhere"})

    with pytest.raises(StsUnavailableError):
        decide(signed())
    assert len(sts.requests) == 1


def test_a_failure_of_sts_is_no_refusal(decide: Callable[..., dict[str, Any]], sts: Sts) -> None:
    sts.instead = (500, {})

    with pytest.raises(StsUnavailableError):
        decide(signed())


def test_a_token_is_in_no_log(caplog: pytest.LogCaptureFixture, pauses: Pauses) -> None:
    with Sts() as gone:
        endpoint = gone.endpoint
    identity = CallerIdentity(
        urllib3.PoolManager(), region=REGION, audience=token_audience(ACCOUNT, "chat"), endpoint=endpoint
    )
    authorizer = Authorizer(
        Configuration.from_json(json.dumps(CONFIGURATION)), identity, region=REGION, remembered_seconds=300
    )

    with pytest.raises(StsUnavailableError) as failure:
        authorizer.decide(event(f"Bearer {signed()}"))

    assert pauses.seconds, "it was tried again"
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__
    assert "X-Amz" not in caplog.text


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_token_is_refused(data: st.DataObject, decide: Callable[..., dict[str, Any]]) -> None:
    parts = urlsplit(address_of(signed()))
    pairs = parse_qsl(parts.query)
    place = data.draw(st.integers(0, len(pairs) - 1))
    name, value = pairs[place]
    changed = data.draw(st.text(max_size=40).filter(lambda text: text != value))
    pairs[place] = (name, changed)
    address = parts._replace(query=urlencode(pairs, errors="surrogatepass")).geturl()

    with pytest.raises(UnauthorizedError):
        decide(token_of(address))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200))
def test_no_text_is_more_than_refused(text: str, decide: Callable[..., dict[str, Any]]) -> None:
    for token in (text, TOKEN_PREFIX + text, token_of(text.encode("utf-8", "replace").decode())):
        with pytest.raises(UnauthorizedError):
            decide(token)


def test_without_credentials_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(UserError, match="there are no AWS credentials"):
        batch_token(boto3.Session(region_name=REGION), **HERE)
