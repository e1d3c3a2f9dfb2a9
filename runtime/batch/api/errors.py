"""Errors in the shape of the OpenAI API (https://platform.openai.com/docs/guides/error-codes)."""

from __future__ import annotations

import json
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools.event_handler import Response, content_types

from batch.jobs.job import JobError

#: What the clients make of a status; the rest is an `invalid_request_error`.
_TYPES: Final = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.INTERNAL_SERVER_ERROR: "server_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "server_error",
}


class ApiError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status
        The answer's status.
    message
        What was got, what is allowed, and what to do.
    code
        A word for programs.
    param
        Field of the request that is wrong.
    """

    def __init__(
        self, status: HTTPStatus, message: str, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    def response(self) -> Response[str]:
        """Return the answer."""
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
    """Return the error of a request that is wrong.

    Parameters
    ----------
    message, code, param
        As in `ApiError`.
    """
    return ApiError(HTTPStatus.BAD_REQUEST, message, code=code, param=param)


def not_found(what: str, identifier: str) -> ApiError:
    """Return the error of what is not there, or is not the caller's: nobody learns which.

    Parameters
    ----------
    what
        What was looked for.
    identifier
        Its identifier, as it was sent.
    """
    return ApiError(HTTPStatus.NOT_FOUND, f"No such {what}: {identifier[:100]}", code="not_found", param="id")


def all_of(problems: Collection[JobError]) -> ApiError:
    """Return one error for everything that is wrong with a request.

    Parameters
    ----------
    problems
        All of it; programs are told of the first.
    """
    first = next(iter(problems))
    return invalid("; ".join(problem.message for problem in problems), code=first.code, param=first.param)
