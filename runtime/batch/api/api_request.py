"""The parts of an API request: caller, body and query."""

from __future__ import annotations

import binascii
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final

import multipart
from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

from batch.jobs.fields import Fields, read_object
from batch.jobs.job_table import JobError
from inference_contracts.batch_configuration import BatchTeam, Configuration
from inference_contracts.batch_limits import MAX_REQUEST_BYTES

# Errors in the format of the OpenAI API (https://platform.openai.com/docs/guides/error-codes).

#: Error type per HTTP status, as the clients know it. All other statuses are an `invalid_request_error`.
_TYPES: Final = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.INTERNAL_SERVER_ERROR: "server_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "server_error",
}


class ApiError(Exception):
    """A refused request.

    message: The received value, the allowed values, and the action to take.
    code: Stable error code for programs.
    param: The invalid field of the request.
    """

    def __init__(
        self, status: HTTPStatus, message: str, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    def response(self) -> Response[str]:
        body = {
            "error": {
                "message": str(self),
                "type": _TYPES.get(self.status, "invalid_request_error"),
                "param": self.param,
                "code": self.code,
            }
        }
        return Response(
            status_code=self.status, content_type=content_types.APPLICATION_JSON, body=json.dumps(body)
        )


def invalid(message: str, *, code: str | None = None, param: str | None = None) -> ApiError:
    """Return the error of an invalid request."""
    return ApiError(HTTPStatus.BAD_REQUEST, message, code=code, param=param)


def not_found(what: str, identifier: str) -> ApiError:
    """Return the error for an object that does not exist or belongs to another team.

    The error does not tell which.

    what: Kind of the object.
    identifier: Its identifier, as the client sent it.
    """
    return ApiError(HTTPStatus.NOT_FOUND, f"No such {what}: {identifier[:100]}", code="not_found", param="id")


def all_of(problems: Collection[JobError]) -> ApiError:
    """Return one error for all problems of a request.

    problems: All problems. The code and parameter are those of the first one.
    """
    first = next(iter(problems))
    return invalid("; ".join(problem.message for problem in problems), code=first.code, param=first.param)


# A form has a file and a few short fields. The fields beside the file stay far below this.
_MAX_FORM_BYTES: Final = MAX_REQUEST_BYTES + 64 * 1024
_MAX_FIELDS: Final = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    principal: str
    team: BatchTeam


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request whose sender is known."""

    event: APIGatewayProxyEvent
    """Event of API Gateway's Lambda proxy integration."""
    caller: Caller

    @property
    def team(self) -> BatchTeam:
        return self.caller.team


@dataclass(frozen=True, slots=True)
class FormFile:
    """The file in a form."""

    filename: str
    """The sender's name for the file."""
    content: bytes


def caller_of(event: APIGatewayProxyEvent, configuration: Configuration) -> Caller:
    """Return the sender of a request. API Gateway has verified it, by token or signature.

    Raises ApiError if API Gateway did not verify the sender, or the sender belongs to no team.
    """
    context: Mapping[str, Any] = event.raw_event.get("requestContext") or {}
    authorizer = context.get("authorizer") or {}
    identity = context.get("identity") or {}
    principal = authorizer.get("principal") or identity.get("userArn")
    if not principal:
        raise ApiError(HTTPStatus.UNAUTHORIZED, "The request has neither a token nor a signature.")
    # The authorizer has read the team of an API key; a principal may have left its team since its decision.
    is_key = bool(authorizer.get("key"))
    team = configuration.team(authorizer["team"]) if is_key else configuration.team_of(principal)
    if team is None:
        raise ApiError(
            HTTPStatus.FORBIDDEN,
            f"{principal} does not belong to a team of {configuration.platform}.",
            code="no_team",
        )
    return Caller(principal, team)


def header(event: APIGatewayProxyEvent, name: str) -> str:
    """Return a header, regardless of its case; empty if it is missing.

    name: The header, in lower case.
    """
    headers = event.raw_event.get("headers") or {}
    return next((value for key, value in headers.items() if key.lower() == name), "")


def json_fields(event: APIGatewayProxyEvent) -> Fields:
    """Return the fields of a JSON body.

    Raises ApiError if the content type is not JSON. Raises InvalidError if the body is not a JSON object.
    """
    content_type = header(event, "content-type").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise _wrong_type(content_type, "application/json")
    return Fields(read_object(_body(event)))


def query_fields(event: APIGatewayProxyEvent) -> Fields:
    return Fields(event.raw_event.get("queryStringParameters") or {})


def form(event: APIGatewayProxyEvent, *, file: str) -> tuple[FormFile, Fields]:
    """Return the file and the other fields of a form.

    file: Name of the field that holds the file.
    Raises ApiError if the body is not a form, has no file, or is too large.
    """
    content_type, options = multipart.parse_options_header(header(event, "content-type"))
    if content_type != "multipart/form-data" or not options.get("boundary"):
        raise _wrong_type(content_type, "multipart/form-data with a boundary")
    body = _body(event)
    if len(body) > _MAX_FORM_BYTES:
        raise too_large(len(body))
    try:
        parts = {part.name: part for part in _parts(body, options["boundary"])}
        others = {name: part.raw.decode() for name, part in parts.items() if name != file}
    except multipart.MultipartError as error:
        raise invalid(f"The body is not multipart/form-data: {error}") from error
    except UnicodeDecodeError as error:
        raise invalid("A field of the form is not UTF-8.") from error
    if file not in parts:
        raise invalid(f"{file}: is missing", code="missing_required_parameter", param=file)
    if parts[file].size > MAX_REQUEST_BYTES:
        raise too_large(parts[file].size)
    return FormFile(parts[file].filename or file, parts[file].raw), Fields(_nested(others))


def too_large(size: int) -> ApiError:
    """Return the error for a body that exceeds the size limit."""
    return ApiError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"{size} bytes are more than the {MAX_REQUEST_BYTES} bytes that a request may have. Send the file in "
        "parts (POST /v1/uploads, which the Python client's client.uploads.upload_file_chunked does with "
        f"part_size={MAX_REQUEST_BYTES}), or leave it in S3 and submit a manifest that names it.",
        code="request_too_large",
        param="file",
    )


def _body(event: APIGatewayProxyEvent) -> bytes:
    body = event.raw_event.get("body") or ""
    if not event.raw_event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return binascii.a2b_base64(body)
    except (binascii.Error, ValueError) as error:
        raise invalid("The body is not base64.") from error


def _parts(body: bytes, boundary: str) -> Iterable[Any]:
    """Iterate over the parts of a form. All parts are in memory."""
    parts: Iterable[Any] = multipart.MultipartParser(
        BytesIO(body),
        boundary,
        len(body),
        spool_limit=_MAX_FORM_BYTES,
        memory_limit=_MAX_FORM_BYTES,
        part_limit=_MAX_FIELDS,
    )
    return parts


def _nested(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a form with bracket names as nested objects, such as `expires_after[seconds]`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        outer, bracket, inner = name.partition("[")
        if bracket and inner.endswith("]"):
            group = found.setdefault(outer, {})
            if isinstance(group, dict):
                group[inner[:-1]] = value
        else:
            found[name] = value
    return found


def _wrong_type(got: str, expected: str) -> ApiError:
    """Return the error for a body of the wrong content type."""
    return ApiError(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        f"Content-Type: got {got[:100] or 'none'}, must be {expected}.",
        code="unsupported_content_type",
    )
