"""Answers put in AWS's mouth before moto's: botocore's own retries, parsing and errors are at work."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any

from botocore.awsrequest import AWSResponse

Fault = tuple[int, bytes] | Exception


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_arguments: object, **_options: object) -> Iterator[bytes]:
        yield self._content

    def read(self, *_arguments: object, **_options: object) -> bytes:
        return self._content


class Faults:
    """A `before-send` handler that answers the first calls itself.

    faults: Answers in turn; when they are used up, moto answers.
    """

    def __init__(self, *faults: Fault) -> None:
        self._faults = deque(faults)
        self.calls = 0

    def __call__(self, request: Any, **_options: object) -> AWSResponse | None:
        self.calls += 1
        if not self._faults:
            return None
        fault = self._faults.popleft()
        if isinstance(fault, Exception):
            raise fault
        status, content = fault
        return AWSResponse(
            request.url, status, {"content-type": "application/x-amz-json-1.1"}, _Body(content)
        )

    def into(self, client: Any, operation: str) -> Faults:
        """Stand before one operation of a client, or before all of them with ``*``."""
        service = client.meta.service_model.service_id.hyphenize()
        event = f"before-send.{service}" + ("" if operation == "*" else f".{operation}")
        client.meta.events.register_first(event, self)
        return self


def json_error(code: str, message: str = "no", status: int = 400) -> Fault:
    """An error of a service that speaks JSON."""
    return status, json.dumps({"__type": code, "message": message}).encode()


def ec2_error(code: str, message: str = "no", status: int = 400) -> Fault:
    """An error of EC2."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return status, f"<Response><Errors>{error}</Errors></Response>".encode()


def query_error(code: str, message: str = "no", status: int = 400) -> Fault:
    """An error of a service that speaks the query protocol, such as STS."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return status, f"<ErrorResponse>{error}</ErrorResponse>".encode()
