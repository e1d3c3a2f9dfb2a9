"""Client of a platform's batch API. It signs requests, and adds advice to error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3

from inference_blueprints.operate.batch.signing import Sign
from inference_contracts.errors import UserError

# API Gateway waits 29 s for its function
# (https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html).
_TIMEOUT: Final = urllib3.Timeout(connect=5, read=35)
# Every request can be repeated: requests that are not idempotent have an idempotency key.
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
# Connections to S3 in a row that broke before the first byte.
_VAIN_READS: Final = 5
_ADVICE: Final = {
    "invalid_signature": "sign in again, and check the clock of this machine",
    "no_team": "add your role to a team in spec.teams, and deploy",
    "not_found": "run `blueprints batch status BLUEPRINT` to list the jobs of your team",
}


class BatchApiClient:
    """Client of the API for one caller.

    address: Address of the API, which ends with ``/v1``.
    """

    def __init__(self, address: str, sign: Sign) -> None:
        # Signed requests use /iam/v1.
        self._address = f"{address.rstrip('/').removesuffix('/v1')}/iam/v1"
        self._sign = sign
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=_RETRIES)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return an object of the API. Raises UserError if it is refused, or the API is not reached."""
        return self._object(self._send("GET", f"{path}?{urlencode(query)}" if query else path))

    def post(
        self, path: str, body: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send an object, and return the API's response.

        headers: Additional headers.
        Raises UserError if it is refused, or the API is not reached.
        """
        content = json.dumps(body or {}).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self._object(self._send("POST", path, sent, content))

    def post_data(self, path: str, data: bytes) -> dict[str, Any]:
        """Send bytes as the field ``data`` of a form, and return the API's response.

        Raises UserError if it is refused, or the API is not reached.
        """
        content, content_type = urllib3.encode_multipart_formdata({"data": ("data", data)})
        return self._object(self._send("POST", path, {"Content-Type": content_type}, content))

    def content(self, file_id: str) -> Iterator[bytes]:
        """Iterate over the content of a file; after a broken connection, continue from the same byte.

        Raises UserError if it is refused, changes, or cannot be read to its end.
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
                        f"{file_id}: reading stopped at byte {position:,}: {_reason(error)}; try again"
                    ) from error
            else:
                return

    def _stored(self, location: str, position: int, etag: str | None) -> urllib3.BaseHTTPResponse:
        """Open the file in S3 from a byte on; without the signature, which S3 refuses."""
        headers = {"Range": f"bytes={position}-", "If-Match": etag} if position and etag else {}
        part = self._pool.request("GET", location, headers=headers, preload_content=False)
        if part.status == HTTPStatus.PRECONDITION_FAILED:
            raise UserError("the file changed while it was read; read it again")
        if part.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.drain_conn()  # Its end had been reached when the connection broke.
            return urllib3.HTTPResponse(b"", preload_content=False)
        if part.status >= HTTPStatus.BAD_REQUEST:
            raise UserError(f"S3 answered {part.status} to a read of results: {part.data[:300].decode()}")
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
            raise UserError(f"{host}: cannot be reached: {_reason(error)}; {_WAYS}") from error

    def _object(self, answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
        """Return the object in the response."""
        if answer.status != HTTPStatus.OK:
            raise _refusal(answer)
        found: dict[str, Any] = answer.json()
        return found


_WAYS: Final = (
    "the batch API is private: run this within the platform's VPC, such as on an instance, in a pod or in a "
    "CloudShell of that VPC, or set --address to a tunnel"
)


def _refusal(answer: urllib3.BaseHTTPResponse) -> UserError:
    """Return the error of a refused request, with advice."""
    try:
        error = answer.json()["error"]
        message, code = str(error["message"]), error["code"]
    except (ValueError, LookupError, TypeError):
        # API Gateway's own response, if the request did not come through the API's endpoint.
        return UserError(f"got status {answer.status}, but not from the batch API; {_WAYS}")
    advice = _ADVICE.get(code)
    return UserError(f"{message.rstrip('.')}; {advice}" if advice else message)


def _reason(error: urllib3.exceptions.HTTPError) -> str:
    """Return why a connection failed, without addresses of objects in memory."""
    cause = getattr(error, "reason", None) or error
    return str(cause).rpartition(": ")[2] or type(cause).__name__
