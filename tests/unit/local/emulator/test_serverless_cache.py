"""Tokens are good for a quarter of an hour, other passwords never; a port that is taken is no obstacle."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from inference_contracts.errors import UserError
from inference_local.emulator.serverless_cache import valkey_server
from inference_local.emulator.serverless_cache.front import TokenCheck
from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer
from inference_local.processes.free_ports import free_ports

QUERY = "Action=connect&User=reader&ResourceType=ServerlessCache"


def token(query: str = QUERY, *, age: timedelta = timedelta(), service: str = "elasticache") -> str:
    """Sign a request as it would have been some time ago."""
    request = AWSRequest("GET", f"https://cache/?{query}")
    auth = SigV4QueryAuth(Credentials("KEY", "secret"), service, "us-west-2", expires=900)
    request.context["timestamp"] = (datetime.now(UTC) - age).strftime("%Y%m%dT%H%M%SZ")
    auth._modify_request_before_signing(request)
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    auth._inject_signature_to_request(request, signature)
    return str(request.url).removeprefix("https://")


CHECK = TokenCheck("cache", {"KEY": "secret"}.get)


def test_a_token_of_the_user_is_valid_for_a_quarter_of_an_hour() -> None:
    assert CHECK.is_valid("reader", token())
    assert CHECK.is_valid("reader", token(age=timedelta(minutes=5)))
    late = token(age=timedelta(minutes=16))
    assert not CHECK.is_valid("reader", late)
    assert not CHECK.is_valid("reader", late.replace("Expires=900", "Expires=90000"))


@pytest.mark.parametrize(
    "changes",
    [
        {"query": QUERY.replace("reader", "writer")},
        {"query": QUERY.replace("connect", "list")},
        {"service": "sts"},
    ],
)
def test_a_token_for_something_else_is_not(changes: dict[str, Any]) -> None:
    assert not CHECK.is_valid("reader", token(**changes))


@pytest.mark.parametrize(
    "password",
    [
        "",
        "a password",
        "cache/?X-Amz-Credential=KEY",
        "cache/?X-Amz-Credential=KEY/b/us-west-2/elasticache/d&X-Amz-Expires=x",
    ],
)
def test_another_password_is_not(password: str) -> None:
    assert not CHECK.is_valid("reader", password)


def test_a_key_that_nobody_has_is_not_valid() -> None:
    assert not TokenCheck("cache", lambda _: None).is_valid("reader", token())


@pytest.fixture
def taken() -> Any:
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.clock
@pytest.mark.parametrize("which", ["port", "bus"])
def test_a_port_that_another_took_meanwhile_is_not_insisted_on(
    taken: int, which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = free_ports
    offers = iter([taken])

    def offer(count: int) -> list[int]:
        first, second = plain(count)
        late = next(offers, None)
        if late is None:
            return [first, second]
        return [late, second] if which == "port" else [first, late]

    monkeypatch.setattr(valkey_server, "free_ports", offer)
    with ValkeyServer(tmp_path, {"cluster-enabled": "yes"}) as server, server.client() as client:
        assert client.ping()
        assert server.port != taken
        assert client.info("server")["process_id"] == server.pid


@pytest.mark.clock
def test_a_wrong_setting_is_said_with_the_server_s_words(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Valkey did not start(.|\n)*no-such-setting"):
        ValkeyServer(tmp_path, {"no-such-setting": "1"}).start()
