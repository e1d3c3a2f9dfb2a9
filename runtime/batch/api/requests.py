"""What a request holds: who sent it, its body and its query."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final

import multipart
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

from batch.api.errors import ApiError, invalid
from batch.jobs.configuration import Configuration, Team
from batch.jobs.fields import Fields, read_object

#: Most bytes of a file or part. A function takes an event of 6 MB, in which bytes are base64
#: (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
MOST_BYTES: Final = 4 * 2**20
# A form has a file and a few words; what a form holds beside its file is far below this.
_MOST_FORM_BYTES: Final = MOST_BYTES + 64 * 1024
_MOST_FIELDS: Final = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Parameters
    ----------
    principal
        Its ARN.
    team
        Its team.
    """

    principal: str
    team: Team


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose sender is known.

    Parameters
    ----------
    event
        What API Gateway made of it.
    caller
        Who sent it.
    """

    event: APIGatewayProxyEvent
    caller: Caller

    @property
    def team(self) -> Team:
        """Whose request it is."""
        return self.caller.team


@dataclass(frozen=True, slots=True)
class FormFile:
    """The file of a form.

    Parameters
    ----------
    filename
        Its sender's name for it.
    content
        What it holds.
    """

    filename: str
    content: bytes


def caller_of(event: APIGatewayProxyEvent, configuration: Configuration) -> Caller:
    """Return who sent a request; API Gateway has made sure of it, by token or signature, and nobody else can.

    Parameters
    ----------
    event
        The request.
    configuration
        The teams.

    Raises
    ------
    ApiError
        If nobody made sure, or the caller belongs to no team.
    """
    context: Mapping[str, Any] = event.raw_event.get("requestContext") or {}
    authorizer = context.get("authorizer") or {}
    identity = context.get("identity") or {}
    principal = authorizer.get("principal") or identity.get("userArn")
    if not principal:
        raise ApiError(HTTPStatus.UNAUTHORIZED, "The request carries neither a token nor a signature.")
    team = configuration.team_of(principal)
    if team is None:
        raise ApiError(
            HTTPStatus.FORBIDDEN,
            f"{principal} belongs to no team of {configuration.platform}.",
            code="no_team",
        )
    return Caller(principal, team)


def header(event: APIGatewayProxyEvent, name: str) -> str:
    """Return a header whatever its case is; empty if it is missing.

    Parameters
    ----------
    event
        The request.
    name
        The header, in lower case.
    """
    headers = event.raw_event.get("headers") or {}
    return next((value for key, value in headers.items() if key.lower() == name), "")


def json_fields(event: APIGatewayProxyEvent) -> Fields:
    """Return the fields of a JSON body.

    Parameters
    ----------
    event
        The request.

    Raises
    ------
    ApiError
        If it says that it is something else.
    InvalidError
        If it is no JSON object.
    """
    content_type = header(event, "content-type").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise _wrong_type(content_type, "application/json")
    return Fields(read_object(_body(event)))


def query_fields(event: APIGatewayProxyEvent) -> Fields:
    """Return the parameters of a query.

    Parameters
    ----------
    event
        The request.
    """
    return Fields(event.raw_event.get("queryStringParameters") or {})


def form(event: APIGatewayProxyEvent, *, file: str) -> tuple[FormFile, Fields]:
    """Return the file of a form and its other fields.

    Parameters
    ----------
    event
        The request.
    file
        Name of the field that holds the file.

    Raises
    ------
    ApiError
        If it is no form, has no such file, or is too large.
    """
    content_type, options = multipart.parse_options_header(header(event, "content-type"))
    if content_type != "multipart/form-data" or not options.get("boundary"):
        raise _wrong_type(content_type, "multipart/form-data with a boundary")
    body = _body(event)
    if len(body) > _MOST_FORM_BYTES:
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
    if parts[file].size > MOST_BYTES:
        raise too_large(parts[file].size)
    return FormFile(parts[file].filename or file, parts[file].raw), Fields(_nested(others))


def too_large(size: int) -> ApiError:
    """Return the error of what does not fit into a request.

    Parameters
    ----------
    size
        Its bytes.
    """
    return ApiError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"{size} bytes are more than the {MOST_BYTES} that one request may carry. Send the file in parts ("
        "POST /v1/uploads, which the Python client's client.uploads.upload_file_chunked does with "
        f"part_size={MOST_BYTES}), or leave it in S3 and submit a manifest that names it.",
        code="request_too_large",
        param="file",
    )


def _body(event: APIGatewayProxyEvent) -> bytes:
    """Return the body's bytes."""
    body = event.raw_event.get("body") or ""
    if not event.raw_event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return binascii.a2b_base64(body)
    except (binascii.Error, ValueError) as error:
        raise invalid("The body is not base64.") from error


def _parts(body: bytes, boundary: str) -> Iterable[Any]:
    """Iterate over the parts of a form, all in memory."""
    parts: Iterable[Any] = multipart.MultipartParser(
        BytesIO(body),
        boundary,
        len(body),
        spool_limit=_MOST_FORM_BYTES,
        memory_limit=_MOST_FORM_BYTES,
        part_limit=_MOST_FIELDS,
    )
    return parts


def _nested(values: Mapping[str, str]) -> dict[str, Any]:
    """Return a form's fields as the objects that they spell: `expires_after[seconds]`."""
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
    """Return the error of a body of another kind."""
    return ApiError(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        f"Content-Type: got {got[:100] or 'none'}, must be {expected}.",
        code="unsupported_content_type",
    )
