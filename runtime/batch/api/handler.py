"""The entry point of the API's function: `batch.api.handler.handle`.

Its routes are `/v1/…` behind a Lambda authorizer, for clients with a token, and `/iam/v1/…` behind AWS_IAM,
for callers who sign their requests. API Gateway accepts only one kind of credentials per route.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from batch.api.api_request import ApiError, ApiRequest, all_of, caller_of
from batch.api.batches import Batches
from batch.api.cost_routes import Costs
from batch.api.files import Files, Uploads
from batch.jobs.fields import InvalidError
from batch.jobs.settings import BatchPlatform, read_platform

_logger = logging.getLogger(__name__)

_Endpoint = Callable[..., dict[str, Any] | Response[str]]
# Error codes of AWS for overload or a partial outage, after the retries of botocore.
_PASSING: Final = frozenset(
    {
        "InternalError",
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingException",
        "TransactionConflictException",
    }
)


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Answer a request.

    event, context: Input of API Gateway's Lambda proxy integration.
    """
    return application().resolve(event, context)


@cache
def application() -> APIGatewayRestResolver:
    return build(read_platform(os.environ))


def build(platform: BatchPlatform) -> APIGatewayRestResolver:
    application = APIGatewayRestResolver(strip_prefixes=["/iam"])
    for method, rule, endpoint in _routes(platform):
        application.route(rule, method=method)(_answering(application, platform, endpoint))
    _explain_errors(application)
    return application


def _routes(platform: BatchPlatform) -> list[tuple[str, str, _Endpoint]]:
    """Return the handler of each route."""
    files, uploads, batches = Files(platform), Uploads(platform), Batches(platform)
    costs = Costs(platform)
    return [
        ("POST", "/v1/files", files.create),
        ("GET", "/v1/files", files.list),
        ("GET", "/v1/files/<file_id>", files.retrieve),
        ("DELETE", "/v1/files/<file_id>", files.delete),
        ("GET", "/v1/files/<file_id>/content", files.content),
        ("POST", "/v1/uploads", uploads.create),
        ("POST", "/v1/uploads/<upload_id>/parts", uploads.add_part),
        ("POST", "/v1/uploads/<upload_id>/complete", uploads.complete),
        ("POST", "/v1/uploads/<upload_id>/cancel", uploads.cancel),
        ("POST", "/v1/batches", batches.create),
        ("GET", "/v1/batches", batches.list),
        ("GET", "/v1/batches/<batch_id>", batches.retrieve),
        ("POST", "/v1/batches/<batch_id>/cancel", batches.cancel),
        ("POST", "/v1/batches/<batch_id>/redrive", batches.redrive),
        ("GET", "/v1/costs", costs.retrieve),
    ]


def _answering(
    application: APIGatewayRestResolver, platform: BatchPlatform, endpoint: _Endpoint
) -> Callable[..., Response[str]]:
    """Return a route that identifies its caller first."""

    def answer(**arguments: str) -> Response[str]:
        event = application.current_event
        caller = caller_of(event, platform.configuration)
        body = endpoint(ApiRequest(event, caller), **arguments)
        if isinstance(body, Response):
            return body
        return Response(
            status_code=HTTPStatus.OK, content_type=content_types.APPLICATION_JSON, body=json.dumps(body)
        )

    return answer


def _explain_errors(application: APIGatewayRestResolver) -> None:
    """Convert every error to the format of the OpenAI API."""

    def explain_refusal(error: ApiError) -> Response[str]:
        return error.response()

    def explain_problems(error: InvalidError) -> Response[str]:
        return all_of(error.problems).response()

    def explain_unknown_route(_: NotFoundError) -> Response[str]:
        event = application.current_event
        what = f"Unknown request URL: {event.http_method} {event.path[:200]}."
        return ApiError(HTTPStatus.NOT_FOUND, what, code="unknown_url").response()

    def explain_failure(error: Exception) -> Response[str]:
        _logger.error("request failed", exc_info=error)
        code = getattr(error, "response", {}).get("Error", {}).get("Code")
        if code in _PASSING:
            return ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE, "The platform is busy; send the request again."
            ).response()
        return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "The platform failed; its log says why.").response()

    application.exception_handler(ApiError)(explain_refusal)
    application.exception_handler(InvalidError)(explain_problems)
    application.exception_handler(NotFoundError)(explain_unknown_route)
    application.exception_handler(Exception)(explain_failure)
