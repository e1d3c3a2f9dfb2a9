"""Client of a platform's batch API. It signs requests, and adds advice to error messages."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import boto3
import urllib3
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from inference_blueprints.operate.aws.account import Account, demand_credentials
from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
from inference_blueprints.spec.types import Batch, Blueprint
from inference_contracts import batch_limits, batch_names
from inference_contracts.batch_names import API_OUTPUT
from inference_contracts.errors import UserError


def batch_section(blueprint: Blueprint) -> Batch:
    """Return the batch section of a blueprint. Raises UserError if it has none."""
    section = blueprint.spec.batch
    if section is None:
        raise UserError(
            f"{blueprint.metadata.name}: has no batch; add spec.teams and spec.batch.queues to the "
            "blueprint, and deploy it"
        )
    return section


def batch_address(account: Account, platform: str) -> str:
    """Return the address of a platform's batch API, which ends with ``/v1``.

    account: Account of the platform.
    Raises UserError if batch is not deployed, or AWS does not answer.
    """
    return stack_outputs(account, f"{platform}-Batch", API_OUTPUT)[API_OUTPUT]


# Signs requests with the caller's credentials (SigV4): to API Gateway, or to another service.
#
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html

#: Takes method, address, headers and body of a request; returns the headers with the signature.
Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]


def signer(session: boto3.Session, *, region: str, service: str = "execute-api") -> Sign:
    """Return a function that signs requests.

    session: Session with the credentials that sign; temporary ones are renewed in time.
    region: Region of the service.
    service: Its name in signatures; that of API Gateway signs for the batch API.
    Raises SignInError if there are no credentials.
    """
    credentials = demand_credentials(session)

    def sign(method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        request = AWSRequest(method, address, headers=dict(headers), data=body)
        SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(request)
        return dict(request.headers.items())

    return sign


# Tokens for clients of the batch API that cannot sign their requests.
#
# A token is a signed request to STS, which identifies the signer. It is accepted for 10 minutes, by one
# platform, whose authorizer checks it (`runtime/batch/authorizer`). It needs no permission
# (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html).


def batch_token(session: boto3.Session, *, platform: str, region: str, account: str) -> str:
    """Return a token for a platform's batch API.

    session: Session with the credentials that sign the token.
    platform, region, account: Name, region and AWS account of the platform. No other platform accepts the
        token.
    Raises SignInError if there are no credentials.
    """
    credentials = demand_credentials(session)
    request = AWSRequest(
        "GET",
        f"https://{batch_names.sts_host(region)}/?Action=GetCallerIdentity&Version=2011-06-15",
        headers={batch_names.TOKEN_AUDIENCE_HEADER: batch_names.token_audience(account, platform)},
    )
    SigV4QueryAuth(
        credentials.get_frozen_credentials(), "sts", region, expires=batch_limits.TOKEN_SECONDS
    ).add_auth(request)
    return batch_names.TOKEN_PREFIX + base64.urlsafe_b64encode(request.url.encode()).decode().rstrip("=")


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
