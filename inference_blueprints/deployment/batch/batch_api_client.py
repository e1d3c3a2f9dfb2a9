"""A platform's batch API, asked with signed requests; what it refuses is said with what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3

from inference_blueprints.deployment.batch.signing import Sign
from inference_blueprints.errors import UserError

# API Gateway waits 29 s for its function
# (https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html).
_TIMEOUT: Final = urllib3.Timeout(connect=5, read=35)
# Every request can be sent again: the API takes an idempotency key where that is not so by itself.
_RETRIES: Final = urllib3.Retry(
    total=5,
    connect=1,
    redirect=0,
    allowed_methods=None,
    status_forcelist=(
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    ),
    backoff_factor=0.5,
    raise_on_status=False,
    raise_on_redirect=False,
)
_READ_BYTES: Final = 2**20
# Connections to S3 that broke one after the other before a byte came.
_VAIN_READS: Final = 5
_ADVICE: Final = {
    "invalid_signature": "sign in again, and see that this machine's clock is right",
    "no_team": "ask for your role to be put into a team of spec.teams, and for a deployment",
    "not_found": "`blueprints batch status BLUEPRINT` lists the jobs of your team",
}


class BatchApiClient:
    """The API, as one caller sees it.

    Parameters
    ----------
    address
        Where it is, ``/v1`` at its end.
    """

    def __init__(self, address: str, sign: Sign) -> None:
        # Beside it is the same for requests that are signed.
        self._address = f"{address.rstrip('/').removesuffix('/v1')}/iam/v1"
        self._sign = sign
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=_RETRIES)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return an object of the API.

        Raises
        ------
        UserError
            If it is refused, or the API is not reached.
        """
        return self._object(self._send("GET", f"{path}?{urlencode(query)}" if query else path))

    def post(
        self, path: str, body: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send an object, and return what the API makes of it.

        Parameters
        ----------
        headers
            Headers beside those of every request.

        Raises
        ------
        UserError
            If it is refused, or the API is not reached.
        """
        content = json.dumps(body or {}).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self._object(self._send("POST", path, sent, content))

    def post_data(self, path: str, data: bytes) -> dict[str, Any]:
        """Send bytes as the field ``data`` of a form, and return what the API makes of it.

        Raises
        ------
        UserError
            If it is refused, or the API is not reached.
        """
        content, content_type = urllib3.encode_multipart_formdata({"data": ("data", data)})
        return self._object(self._send("POST", path, {"Content-Type": content_type}, content))

    def content(self, file_id: str) -> Iterator[bytes]:
        """Iterate over what a file holds; where a connection breaks, it goes on from there.

        Raises
        ------
        UserError
            If it is refused, changes, or cannot be read to its end.
        """
        position, failures = 0, 0
        etag: str | None = None
        while True:
            answer = self._send("GET", f"/files/{file_id}/content")
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise _refusal(answer)
            before = position
            try:
                part = self._stored(answer.headers["Location"], position, etag)
                etag = part.headers.get("ETag")
                for piece in part.stream(_READ_BYTES):
                    position += len(piece)
                    yield piece
            except urllib3.exceptions.HTTPError as error:
                failures = failures + 1 if position == before else 0
                if failures == _VAIN_READS:
                    raise UserError(
                        f"{file_id}: cannot be read from byte {position:,} on: {_reason(error)}; try again"
                    ) from error
            else:
                return

    def _stored(self, location: str, position: int, etag: str | None) -> urllib3.BaseHTTPResponse:
        """Open what S3 holds, from a byte on; without the signature, which S3 refuses."""
        headers = {"Range": f"bytes={position}-", "If-Match": etag} if position and etag else {}
        part = self._pool.request("GET", location, headers=headers, preload_content=False)
        if part.status == HTTPStatus.PRECONDITION_FAILED:
            raise UserError("the file was written anew while it was read; read it again")
        if part.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.drain_conn()  # Its end had been reached when the connection broke.
            return urllib3.HTTPResponse(b"", preload_content=False)
        if part.status >= HTTPStatus.BAD_REQUEST:
            raise UserError(f"S3 answers {part.status} where results are read: {part.data[:300].decode()}")
        return part

    def _send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, signed."""
        address = self._address + path
        signed = self._sign(method, address, headers or {}, body)
        try:
            return self._pool.request(method, address, headers=signed, body=body or None)
        except urllib3.exceptions.HTTPError as error:
            host = urlsplit(self._address).hostname
            raise UserError(f"{host}: is not reached: {_reason(error)}; {_WAYS}") from error

    def _object(self, answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
        """Return the object that was answered."""
        if answer.status != HTTPStatus.OK:
            raise _refusal(answer)
        found: dict[str, Any] = answer.json()
        return found


_WAYS: Final = (
    "the batch API is private: run this within the platform's VPC, such as on an instance, in a pod or in a "
    "CloudShell of that VPC, or name the end of a tunnel with --address"
)


def _refusal(answer: urllib3.BaseHTTPResponse) -> UserError:
    """Return what a refused request is told, and what to do."""
    try:
        error = answer.json()["error"]
        message, code = str(error["message"]), error["code"]
    except (ValueError, LookupError, TypeError):
        # API Gateway itself, which knows nothing of this API where the request comes another way.
        return UserError(f"the address answers {answer.status}, and not as the batch API does; {_WAYS}")
    advice = _ADVICE.get(code)
    return UserError(f"{message.rstrip('.')}; {advice}" if advice else message)


def _reason(error: urllib3.exceptions.HTTPError) -> str:
    """Return why a connection failed, without addresses of objects in memory."""
    cause = getattr(error, "reason", None) or error
    return str(cause).rpartition(": ")[2] or type(cause).__name__
