"""Refuses what AWS refuses for the parameters of a request alone: by the API's model, and by our table."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from xml.sax.saxutils import escape

from ministack import app
from ministack.core.responses import new_uuid

from inference_local.emulator.model_constraints import beyond_model
from inference_local.emulator.refusals import AwsApiError
from inference_local.emulator.request_parameters import Request, SentRequest, read_request, service_name
from inference_local.emulator.request_refusals import refused_request

Answer = tuple[int, dict[str, str], bytes]
Handler = Callable[[str, str, dict[str, str], bytes, Any], Awaitable[Any]]


def apply() -> None:
    """Apply the patch."""
    for emulated, handler in app.SERVICE_HANDLERS.items():
        if name := service_name(emulated):
            app.SERVICE_HANDLERS[emulated] = _checked(name, handler)


def _checked(name: str, plain: Handler) -> Handler:
    async def handle(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Any:
        request = _read(name, SentRequest(method, path, headers, body, query))
        error = request and refusal_of(request)
        if error and request:
            return error_answer(request, error)
        return await plain(method, path, headers, body, query)

    return handle


def _read(name: str, sent: SentRequest) -> Request | None:
    try:
        return read_request(name, sent)
    except ValueError:
        return None  # no JSON or no text: the service says so


def refusal_of(request: Request) -> AwsApiError | None:
    """Return the error with which AWS answers a request; None if the parameters alone are right."""
    return beyond_model(request.operation, request.parameters) or refused_request(
        request.operation, request.parameters
    )


def error_answer(request: Request, error: AwsApiError) -> Answer:
    """Return an error in the protocol of the service."""
    protocol = request.operation.service_model.protocol
    if protocol in ("query", "ec2", "rest-xml"):
        words = f"<Code>{escape(error.code)}</Code><Message>{escape(str(error))}</Message>"
        kind = "<Type>Sender</Type>"
        body = {
            "query": f"<ErrorResponse><Error>{kind}{words}</Error></ErrorResponse>",
            "ec2": f"<Response><Errors><Error>{words}</Error></Errors></Response>",
            "rest-xml": f"<Error>{words}</Error>",
        }[protocol]
        if request.operation.service_model.service_name == "route53":
            body = f"<ErrorResponse><Error>{kind}{words}</Error></ErrorResponse>"
        return 400, {"Content-Type": "text/xml"}, f'<?xml version="1.0"?>{body}'.encode()
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": error.code}
    content = {"__type": error.code, "message": str(error)}
    return 400, headers | {"x-amzn-requestid": new_uuid()}, json.dumps(content).encode()
