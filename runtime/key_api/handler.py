"""The function: `key_api.handler.handle`. `settings` documents its environment.

============================== ============================================================================
Request                        Answer
============================== ============================================================================
``POST /v1/keys``              201 and the new key with its secret, which is shown once
``GET /v1/keys``               ``{"keys": [...]}``, the newest first; with ``?all=true`` also expired and
                               revoked ones
``GET /v1/keys/KEY``           the key
``POST /v1/keys/KEY/rotate``   the key with its new secret
``DELETE /v1/keys/KEY``        the key, revoked
============================== ============================================================================

Errors have the format of the OpenAI API. A key of another team is as unknown as one that does not exist.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from inference_contracts import principals
from inference_contracts.door_audit import Actor
from inference_contracts.door_key_acts import (
    KeyActs,
    KeyChange,
    KeyConflictError,
    KeyRequestError,
    UnknownKeyError,
)
from inference_contracts.door_key_document import change_document, key_document
from key_api.bodies import key_request, read_body, rotation
from key_api.settings import KeyApiPlatform, read_platform

_logger = logging.getLogger(__name__)
# Error codes of AWS for overload or a partial outage, after the retries of botocore.
_PASSING: Final = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingException",
    }
)
_TYPES: Final = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.INTERNAL_SERVER_ERROR: "server_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "server_error",
}


class NoTeamError(Exception):
    """The caller is no principal of a team."""


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Answer a request.

    event, context: Input of API Gateway's Lambda proxy integration.
    """
    return application().resolve(event, context)


@cache
def application() -> APIGatewayRestResolver:
    return build(read_platform(os.environ))


def build(platform: KeyApiPlatform, clock: Callable[[], float] = time.time) -> APIGatewayRestResolver:
    """Return the application.

    clock: Seconds since 1970.
    """
    application = APIGatewayRestResolver(strip_prefixes=["/iam"])

    def acts() -> KeyActs:
        return _acts(platform, application.current_event.raw_event)

    def create() -> Response[str]:
        found = acts()
        body = read_body(application.current_event.raw_event)
        return _changed(
            found.create(key_request(body, team=found.team or ""), now=clock()), clock(), HTTPStatus.CREATED
        )

    def list_keys() -> Response[str]:
        now = clock()
        query = application.current_event.raw_event.get("queryStringParameters") or {}
        every = query.get("all") == "true"
        keys = [key_document(each, now) for each in acts().list() if every or each.hashes_at(now)]
        return _answer(HTTPStatus.OK, {"keys": keys})

    def retrieve(key: str) -> Response[str]:
        return _answer(HTTPStatus.OK, key_document(acts().get(key), clock()))

    def rotate(key: str) -> Response[str]:
        hours, again = rotation(read_body(application.current_event.raw_event))
        change = acts().rotate(key, now=clock(), overlap_hours=hours, again=again)
        return _changed(change, clock(), HTTPStatus.OK)

    def revoke(key: str) -> Response[str]:
        return _changed(acts().revoke(key, now=clock()), clock(), HTTPStatus.OK)

    application.route("/v1/keys", method="POST")(create)
    application.route("/v1/keys", method="GET")(list_keys)
    application.route("/v1/keys/<key>", method="GET")(retrieve)
    application.route("/v1/keys/<key>/rotate", method="POST")(rotate)
    application.route("/v1/keys/<key>", method="DELETE")(revoke)
    _explain_errors(application)
    return application


def _acts(platform: KeyApiPlatform, event: Mapping[str, Any]) -> KeyActs:
    """Return what the sender of a request may do. API Gateway has checked the signature.

    Raises NoTeamError if the sender belongs to no team.
    """
    context: Mapping[str, Any] = event.get("requestContext") or {}
    arn = (context.get("identity") or {}).get("userArn") or ""
    sender = principals.canonical(arn)
    for team in platform.rules.teams:
        if sender and sender in {principals.canonical(each) for each in team.principals}:
            return KeyActs(platform.table, platform.audit, platform.rules, Actor(arn, "api"), team.name)
    raise NoTeamError(arn)


def _changed(change: KeyChange, now: float, status: HTTPStatus) -> Response[str]:
    if change.audit_problem is not None:
        _logger.error("the end of an act on key %s has no record: %s", change.record.id, change.audit_problem)
    return _answer(status, change_document(change, now))


def _answer(status: HTTPStatus, document: Any) -> Response[str]:
    return Response(
        status_code=status,
        content_type=content_types.APPLICATION_JSON,
        body=json.dumps(document),
        # Answers may have a secret.
        headers={"Cache-Control": "no-store"},
    )


def _error(status: HTTPStatus, code: str | None, message: str) -> Response[str]:
    kind = _TYPES.get(status, "invalid_request_error")
    return _answer(status, {"error": {"message": message, "type": kind, "param": None, "code": code}})


def _explain_errors(application: APIGatewayRestResolver) -> None:
    """Convert every error to the format of the OpenAI API."""

    def explain_stranger(error: NoTeamError) -> Response[str]:
        message = (
            f"{error} belongs to no team of this platform. Send the request as a principal of a team, or ask "
            "the platform's owner to add it."
        )
        return _error(HTTPStatus.FORBIDDEN, "no_team", message)

    def explain_refusal(error: KeyRequestError) -> Response[str]:
        if isinstance(error, UnknownKeyError):
            return _error(HTTPStatus.NOT_FOUND, "not_found", str(error))
        if isinstance(error, KeyConflictError):
            return _error(HTTPStatus.CONFLICT, "conflict", str(error))
        return _error(HTTPStatus.BAD_REQUEST, "invalid_value", "; ".join(error.problems))

    def explain_unknown_route(_: NotFoundError) -> Response[str]:
        event = application.current_event
        what = f"Unknown request URL: {event.http_method} {event.path[:200]}."
        return _error(HTTPStatus.NOT_FOUND, "unknown_url", what)

    def explain_failure(error: Exception) -> Response[str]:
        _logger.error("request failed", exc_info=error)
        code = getattr(error, "response", {}).get("Error", {}).get("Code")
        if code in _PASSING:
            return _error(
                HTTPStatus.SERVICE_UNAVAILABLE, None, "The platform is busy; send the request again."
            )
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, None, "The platform failed; its log says why.")

    application.exception_handler(NoTeamError)(explain_stranger)
    application.exception_handler(KeyRequestError)(explain_refusal)
    application.exception_handler(NotFoundError)(explain_unknown_route)
    application.exception_handler(Exception)(explain_failure)
