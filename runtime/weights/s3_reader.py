"""Reads objects of S3 with Python's standard library: not every engine's image has an S3 client.

Requests are signed with Signature Version 4 (Amazon S3 API Reference, "Authenticating Requests"). Credentials
are those of EKS Pod Identity (AWS SDKs and Tools Reference Guide, "Container credential provider").
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weights.attempts import Attempts

_TIMEOUT_SECONDS = 60.0
_PARTIAL_CONTENT, _PRECONDITION_FAILED = 206, 412
#: What AWS's SDKs try again (botocore/retries/standard.py): states, and S3's codes with other states.
_RETRIED = (429, 500, 502, 503, 504)
_RETRIED_CODES = ("<Code>RequestTimeout</Code>", "<Code>SlowDown</Code>")
_PIECE_BYTES = 2**18
_EMPTY_BODY = hashlib.sha256(b"").hexdigest()
# Credentials are requested again this long before they expire.
_MARGIN = timedelta(minutes=5)


class S3Error(Exception):
    """S3 refuses a request, or breaks its answers also after several attempts."""


@dataclass(frozen=True)
class Credentials:
    """Temporary credentials of a role, or permanent ones without a token."""

    key_id: str
    secret: str
    token: str | None = None
    expires: datetime | None = None


def signed_headers(
    url: str,
    credentials: Credentials,
    region: str,
    now: datetime,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the headers of a GET request without a body.

    Parameters
    ----------
    url
        Address; its path and its query are escaped already, and the query is sorted.
    now
        Time of the signature, in UTC.
    headers
        Further headers, which are signed, too.
    """
    parts = urllib.parse.urlsplit(url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    signed = {name.lower(): value for name, value in headers.items()}
    signed |= {"host": parts.netloc, "x-amz-content-sha256": _EMPTY_BODY, "x-amz-date": stamp}
    if credentials.token:
        signed["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = f"GET\n{parts.path}\n{parts.query}\n{lines}\n{names}\n{_EMPTY_BODY}"
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret}".encode()
    for part in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    holder = f"Credential={credentials.key_id}/{scope}"
    authorization = f"AWS4-HMAC-SHA256 {holder}, SignedHeaders={names}, Signature={signature}"
    sent = {name: value for name, value in signed.items() if name != "host"}
    return {**sent, "Authorization": authorization}


class S3Reader:
    """Reads one bucket.

    Parameters
    ----------
    bucket
        Name of the bucket, without dots.
    environment
        Region, credentials and, for an emulator, ``AWS_ENDPOINT_URL``: the variables that AWS's libraries
        read.
    pause_seconds
        Longest wait before the second attempt; it doubles with each attempt.
    timeout_seconds
        Time without a byte after which a connection counts as broken.
    """

    def __init__(
        self,
        bucket: str,
        environment: Mapping[str, str],
        *,
        pause_seconds: float = 0.5,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        self._environment = environment
        self._region = environment.get("AWS_REGION") or environment["AWS_DEFAULT_REGION"]
        suffix = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        regional = f"https://{bucket}.s3.{self._region}.{suffix}"
        self._address = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else regional
        self._pause_seconds, self._timeout_seconds = pause_seconds, timeout_seconds
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None

    def exists(self, key: str) -> bool:
        """Return whether an object exists.

        This lists instead of requesting the object: S3 refuses the request for a missing object of a role
        that may list only one prefix.
        """
        query = f"list-type=2&max-keys=1&prefix={urllib.parse.quote(key, safe='')}"
        answer = self._resource(f"{self._address}/?{query}").read().decode()
        return f"<Key>{key}</Key>" in answer

    def read(self, key: str) -> bytes:
        """Return a whole object.

        Raises
        ------
        S3Error
            If S3 refuses the request, or breaks the answer again and again.
        """
        return self.object(key).read()

    def object(self, key: str) -> S3Resource:
        """Return an object, of which parts are read."""
        return self._resource(f"{self._address}/{urllib.parse.quote(key)}")

    def _resource(self, url: str) -> S3Resource:
        return S3Resource(url, self._request, self._pause_seconds)

    def _request(self, url: str, headers: Mapping[str, str]) -> Any:
        """Send a signed request, and return the answer."""
        signed = signed_headers(url, self._valid_credentials(), self._region, datetime.now(UTC), headers)
        return _open(url, signed, self._timeout_seconds)

    def _valid_credentials(self) -> Credentials:
        """Return credentials that are valid for some minutes."""
        with self._lock:
            known = self._credentials
            if known is None or (known.expires and known.expires - _MARGIN < datetime.now(UTC)):
                self._credentials = known = _credentials(self._environment)
            return known


class S3Resource:
    """What S3 has at an address. Threads may read parts of it at the same time.

    A broken answer goes on where it broke. All bytes are of the same version: later requests name the ETag of
    the first answer (Amazon S3 API Reference, GetObject, ``If-Match``).

    Parameters
    ----------
    url
        The address.
    request
        Sends a request with headers, and returns the answer.
    pause_seconds
        Longest wait before the second attempt.
    """

    def __init__(
        self, url: str, request: Callable[[str, Mapping[str, str]], Any], pause_seconds: float
    ) -> None:
        self._url, self._request, self._pause_seconds = url, request, pause_seconds
        self._lock = threading.Lock()
        self._etag: str | None = None

    def read(self, first: int = 0, size: int | None = None) -> bytes:
        """Return all bytes, or some of them.

        Parameters
        ----------
        first, size
            First byte and number of bytes. Without a size, all.

        Raises
        ------
        S3Error
            If S3 refuses the request, has another version since, or breaks the answer again and again.
        """
        part, attempts = _Part(first, size), Attempts(self._pause_seconds)
        while True:
            before = len(part.body)
            place = self._url
            try:
                if self._receive(part):
                    return bytes(part.body)
                reason = f"got {len(part.body)} of {part.size} bytes"
            except urllib.error.HTTPError as error:
                text, place = _text(error), error.url
                reason = f"{error.code} {text[:500]}"
                if error.code == _PRECONDITION_FAILED:
                    raise self._changed() from error
                if error.code not in _RETRIED and not any(code in text for code in _RETRIED_CODES):
                    raise S3Error(f"{place.partition('?')[0]}: {reason}") from error
            except (OSError, EOFError, http.client.HTTPException) as error:
                reason = str(error) or repr(error)
            attempts.arrived(len(part.body) - before)
            if not attempts.again():
                raise S3Error(f"{place.partition('?')[0]}: {reason}")

    def _receive(self, part: _Part) -> bool:
        """Request what a part lacks and append it. Return whether the part is complete."""
        headers = {}
        if part.size is not None:
            headers["Range"] = f"bytes={part.next_byte}-{part.first + part.size - 1}"
            if part.size == len(part.body):
                return True
        # If-Match never matches a weak ETag (RFC 9110, 13.1.1); `_check_version` compares it here.
        if self._etag is not None and not self._etag.startswith("W/"):
            headers["If-Match"] = self._etag
        with self._request(self._url, headers) as answer:
            self._check_version(answer.headers["ETag"])
            if part.size is None:
                part.size = answer.length
            else:
                _check_range(answer, headers["Range"], part.next_byte)
            if part.size is None:  # lists come in chunks, whose end is marked
                if not answer.chunked:
                    raise http.client.HTTPException("an answer without a length may be cut short")
                part.body += answer.read()
                return True
            # `read()` would drop the bytes of an answer that is cut short.
            while piece := answer.read1(min(_PIECE_BYTES, part.size - len(part.body))):
                part.body += piece
        return len(part.body) == part.size

    def _check_version(self, etag: str | None) -> None:
        with self._lock:
            self._etag = self._etag or etag
            if etag != self._etag:
                raise self._changed()

    def _changed(self) -> S3Error:
        return S3Error(f"{self._url}: was replaced by another version while it was read")


class _Part:
    """Bytes that were asked for, and those of them that arrived."""

    def __init__(self, first: int, size: int | None) -> None:
        self.first, self.size = first, size
        self.body = bytearray()

    @property
    def next_byte(self) -> int:
        return self.first + len(self.body)


def _check_range(answer: Any, wanted: str, next_byte: int) -> None:
    """Refuse other bytes than those that were asked for, such as the whole object (RFC 9110, 14.2)."""
    found = answer.headers["Content-Range"] or ""
    if answer.status != _PARTIAL_CONTENT or not found.startswith(f"bytes {next_byte}-"):
        raise http.client.HTTPException(f"asked for {wanted}, got {answer.status} {found}".rstrip())


def _text(error: urllib.error.HTTPError) -> str:
    """Return S3's words about a refusal, as far as they arrive."""
    try:
        return error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as broken:
        return f"without its text: {broken!r}"


class ObjectStream:
    """An object as a stream. The next parts are requested while the first are read.

    Parameters
    ----------
    read
        Returns bytes of the object, for a first byte and a number of bytes.
    size
        Bytes of the object.
    part_bytes, parts
        Size of a part, and number of parts that are requested ahead.
    executor
        Runs the requests.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], size: int, *, part_bytes: int, parts: int, executor: Executor
    ) -> None:
        self._read, self._executor = read, executor
        self._waiting = deque((first, min(part_bytes, size - first)) for first in range(0, size, part_bytes))
        self._requested: deque[Future[bytes]] = deque()
        self._parts = parts
        self._part = memoryview(b"")

    def read(self, amount: int = -1) -> bytes:
        """Return at most this many bytes; nothing at the end."""
        if not self._part:
            self._request()
            if not self._requested:
                return b""
            self._part = memoryview(self._requested.popleft().result())
            self._request()
        taken = self._part if amount < 0 else self._part[:amount]
        self._part = self._part[len(taken) :]
        return bytes(taken)

    def close(self) -> None:
        """Cancel the requests that nobody will read."""
        self._waiting.clear()
        for request in self._requested:
            request.cancel()

    def _request(self) -> None:
        while self._waiting and len(self._requested) < self._parts:
            self._requested.append(self._executor.submit(self._read, *self._waiting.popleft()))


def _open(url: str, headers: Mapping[str, str], timeout_seconds: float = _TIMEOUT_SECONDS) -> Any:
    """Open a connection without the proxies of the environment: S3 is reached through the VPC's endpoint."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 -- http of the agent, https of S3
    return opener.open(request, timeout=timeout_seconds)


def _credentials(environment: Mapping[str, str]) -> Credentials:
    """Return the credentials that EKS Pod Identity offers, or else those of the environment."""
    address = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if address is None:
        return Credentials(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN"),
        )
    token = Path(environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text(encoding="utf-8").strip()
    with _open(address, {"Authorization": token}) as answer:
        found = json.loads(answer.read())
    return Credentials(
        found["AccessKeyId"],
        found["SecretAccessKey"],
        found["Token"],
        datetime.fromisoformat(found["Expiration"]),
    )
