"""Errors in the format of the OpenAI API (https://platform.openai.com/docs/guides/error-codes)."""

from __future__ import annotations

import json
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools.event_handler import Response, content_types

from batch.jobs.job_record import JobError

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
