"""The proxy in front of Valkey: TLS and authentication, as in ElastiCache.

Each connection must first send ``AUTH <user> <token>``. The proxy then authenticates to Valkey as a user of
the
same name without a password, so that Valkey enforces the permissions of the users.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from inference_local.control_plane.certificates import KeyPair

# Checks IAM tokens.
#
# A token is a presigned request (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html). Its
# signature is computed again with the secret of its access key.

_SERVICE: Final = "elasticache"
_TIME: Final = "%Y%m%dT%H%M%SZ"


class TokenCheck:
    """Checks the tokens of one cache.

    cache: Name of the cache. It is part of the signature.
    secret_of: Returns the secret of an access key. None for an unknown key.
    """

    def __init__(self, cache: str, secret_of: Callable[[str], str | None]) -> None:
        self._cache = cache
        self._secret_of = secret_of

    def is_valid(self, user: str, token: str) -> bool:
        """Return whether a token is for this cache and user, not expired, and signed with a known key.

        user: User of the cache.
        token: The password that the client sent.
        """
        try:
            return self._is_signed(user, dict(parse_qsl(urlsplit(f"https://{token}").query)))
        except (KeyError, ValueError):  # not a token
            return False

    def _is_signed(self, user: str, values: dict[str, str]) -> bool:
        key, _, region, service, _ = values["X-Amz-Credential"].split("/")
        secret = self._secret_of(key)
        if secret is None or service != _SERVICE:
            return False
        seconds = int(values["X-Amz-Expires"])
        # The expected request. Another cache, user or action has another signature.
        query = urlencode({"Action": "connect", "User": user, "ResourceType": "ServerlessCache"})
        request = AWSRequest("GET", f"https://{self._cache}/?{query}")
        credentials = Credentials(key, secret, values.get("X-Amz-Security-Token"))
        auth = SigV4QueryAuth(credentials, service, region, expires=seconds)
        # `add_auth` would use the current time.
        request.context["timestamp"] = values["X-Amz-Date"]
        auth._modify_request_before_signing(request)
        expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        until = datetime.strptime(values["X-Amz-Date"], _TIME).replace(tzinfo=UTC) + timedelta(
            seconds=seconds
        )
        return datetime.now(UTC) < until and values["X-Amz-Signature"] == str(expected)


LOOPBACK: Final = "127.0.0.1"
_REFUSAL: Final = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
_AUTH_WORDS: Final = 3
_PIECE_BYTES: Final = 2**16


class Front:
    """Accepts authenticated connections on a port that the operating system chooses. A context manager.

    certificate: Its TLS certificate.
    admits: Returns whether a user with a password is accepted.
    host: Address on which it listens.
    """

    def __init__(
        self, certificate: KeyPair, admits: Callable[[str, str], bool], host: str = LOOPBACK
    ) -> None:
        self._admits = admits
        self._encryption = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._encryption.load_cert_chain(certificate.certificate, certificate.key)
        self._listener = socket.create_server((host, 0))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cache-front", daemon=True)
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.port: int = self._listener.getsockname()[1]
        #: Port of Valkey, set after Valkey has started.
        self.behind = 0

    def __enter__(self) -> Self:
        self._thread.start()
        serving = asyncio.start_server(self._serve, sock=self._listener, ssl=self._encryption)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self.end_connections()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def end_connections(self) -> None:
        """End every connection, as ElastiCache does after twelve hours."""
        asyncio.run_coroutine_threadsafe(self._end_connections(), self._loop).result()

    async def _end_connections(self) -> None:
        for writer in self._connections.values():
            writer.transport.abort()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is one
        self._connections[task] = writer
        try:
            # The connection ends if the client disconnects or sends no command, or if Valkey has ended.
            with suppress(OSError, EOFError, ValueError):
                await self._let_in(reader, writer)
        finally:
            del self._connections[task]
            writer.close()

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Authenticate a connection, then forward bytes until it ends."""
        words = await _command(reader)
        if len(words) != _AUTH_WORDS or words[0] != "AUTH" or not self._admits(*words[1:]):
            writer.write(_REFUSAL)
            await writer.drain()
            return
        answers, to_server = await asyncio.open_connection(LOOPBACK, self.behind)
        to_server.write(f"AUTH {words[1]} any\r\n".encode())
        await asyncio.gather(_pass_on(reader, to_server), _pass_on(answers, writer))


async def _command(reader: asyncio.StreamReader) -> list[str]:
    """Read a command: an array of strings, each with its length in front."""
    words = []
    for _ in range(int((await reader.readline())[1:])):
        length = int((await reader.readline())[1:])
        words.append((await reader.readexactly(length + 2))[:-2].decode())
    return words


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes until the end of the stream."""
    try:
        with suppress(ConnectionError):
            while piece := await reader.read(_PIECE_BYTES):
                writer.write(piece)
                await writer.drain()
    finally:
        writer.close()
