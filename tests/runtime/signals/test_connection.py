"""The client comes from the environment: plain on this machine, TLS and IAM for a cache."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import CredentialRetrievalError
from botocore.signers import RequestSigner

from inference_local.control_plane.certificates import Authority
from inference_local.emulator.serverless_cache.front import Front
from signals.connection import BULK_TIMEOUTS, IamToken, connect, open_client
from signals.reading import open_reader
from signals.record import SignalRecord
from signals.store import SignalWriter, Written
from signals.store_errors import SettingsError, StoreRefusedError, StoreUnreachableError
from tests.runtime.signals.conftest import LOOPBACK, Cache
from tests.runtime.signals.instants import EXPIRES, WRITTEN
from tests.runtime.signals.memory_server import MemoryServer

SIGNAL = SignalRecord("intent", "shopper-1", "shoes", 5, "qwen", "abc", WRITTEN, EXPIRES)


def test_a_plain_server_is_reached(memory: MemoryServer) -> None:
    assert connect({"SIGNALS_HOST": "127.0.0.1", "SIGNALS_PORT": str(memory.port)}).ping()


def test_everything_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        connect({"SIGNALS_PORT": "x", "SIGNALS_CACHE": "signals", "SIGNALS_TUNNEL": "localhost"})
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "SIGNALS_HOST",
        "SIGNALS_PORT",
        "SIGNALS_USER",
        "SIGNALS_TUNNEL",
    ]


def test_a_token_needs_credentials_and_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SettingsError) as caught:
        IamToken("signals", "reader")
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.usefixtures("credentials")
def test_a_profile_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(SettingsError, match="absent"):
        IamToken("signals", "reader")


@pytest.mark.clock
def test_credentials_that_cannot_be_renewed_are_a_refusal(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_reader(cache.address, BULK_TIMEOUTS) as reader:
        monkeypatch.setattr(RequestSigner, "generate_presigned_url", _end_of_session)
        cache.front.end_connections()
        with pytest.raises(StoreRefusedError, match="no token can be signed"):
            reader.get("intent", "shopper-1")


def _end_of_session(*_: object, **__: object) -> str:
    raise CredentialRetrievalError(provider="sso", error_msg="the session has ended")


@pytest.mark.usefixtures("credentials")
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
    _, elsewhere = IamToken("signals", "writer", "eu-west-1").get_credentials()
    assert "eu-west-1%2Felasticache" in elsewhere


@pytest.mark.clock
def test_a_cache_is_written_and_read_by_users_with_no_more_rights_than_that(cache: Cache) -> None:
    environment = {
        "SIGNALS_HOST": cache.address.host,
        "SIGNALS_PORT": str(cache.address.port),
        "SIGNALS_CACHE": "signals",
        "SIGNALS_USER": "writer",
        "SIGNALS_AUTHORITY": str(cache.address.authority),
    }
    with SignalWriter(connect(environment)) as store, open_reader(cache.address, BULK_TIMEOUTS) as reader:
        assert store.write([SIGNAL]) == Written(1, 0)
        assert reader.get("intent", "shopper-1") == SIGNAL
        assert reader.get_many("intent", ["shopper-1", "shopper-2"]) == {"shopper-1": SIGNAL}
    with SignalWriter(open_client(cache.address, BULK_TIMEOUTS)) as intruder:
        with pytest.raises(StoreRefusedError):
            intruder.write([replace(SIGNAL, version=6)])
        assert intruder.get("intent", "shopper-1") == SIGNAL


@pytest.mark.clock
def test_a_connection_that_the_cache_ended_is_made_again_with_a_fresh_token(cache: Cache) -> None:
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        store.write([SIGNAL])
        before = len(cache.tokens)
        cache.front.end_connections()
        assert store.get("intent", "shopper-1") == SIGNAL
        assert len(cache.tokens) > before
        cache.front.end_connections()
        assert store.write([replace(SIGNAL, version=6)]).written == 1


@pytest.mark.clock
def test_a_token_for_another_cache_is_refused(cache: Cache) -> None:
    with pytest.raises(StoreRefusedError):
        open_reader(replace(cache.address, cache="another"), BULK_TIMEOUTS)


@pytest.mark.clock
def test_a_user_that_is_unknown_is_refused(cache: Cache) -> None:
    with pytest.raises(StoreRefusedError):
        open_reader(replace(cache.address, user="nobody"), BULK_TIMEOUTS)


@pytest.mark.clock
def test_a_token_of_another_key_is_refused(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(StoreRefusedError):
        open_reader(cache.address, BULK_TIMEOUTS)


@pytest.mark.clock
def test_a_certificate_of_an_unknown_authority_is_no_cache(cache: Cache) -> None:
    with pytest.raises(StoreUnreachableError, match="certificate verify failed"):
        open_reader(replace(cache.address, authority=None), BULK_TIMEOUTS)
    assert cache.tokens == []


@pytest.mark.clock
def test_a_certificate_of_another_name_is_no_cache(cache: Cache, authority: Authority) -> None:
    # All of 127.0.0.0/8 is this machine, and the certificate is of one address in it.
    with Front(authority.issue("cache"), lambda *_: True, host="127.0.0.2") as elsewhere:
        address = replace(cache.address, host="127.0.0.2", port=elsewhere.port)
        with pytest.raises(StoreUnreachableError, match="IP address mismatch"):
            open_reader(address, BULK_TIMEOUTS)


@pytest.mark.clock
def test_a_tunnel_leads_to_the_cache_that_the_certificate_names(cache: Cache) -> None:
    # One of the certificate's names, which leads nowhere; and the cache speaks of itself by another address.
    through = replace(cache.address, host="kubernetes", port=1, tunnel=(LOOPBACK, cache.front.port))
    with SignalWriter(open_client(replace(through, user="writer"), BULK_TIMEOUTS)) as store:
        store.write([SIGNAL])
        cache.front.end_connections()
        assert store.get("intent", "shopper-1") == SIGNAL
    with pytest.raises(StoreUnreachableError, match="Hostname mismatch"):
        open_reader(replace(through, host="another.example"), BULK_TIMEOUTS)
