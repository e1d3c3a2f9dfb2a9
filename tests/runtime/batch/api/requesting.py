"""Requests as they reach the function, and its answers."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from batch.api.handler import build
from batch.jobs.settings import BatchPlatform
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import proxy_event

JSON = {"Content-Type": "application/json"}
BOUNDARY = "----of-the-form"


@dataclass(frozen=True)
class Answer:
    """What the function answered."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def error(self) -> dict[str, Any]:
        assert set(self.body) == {"error"}
        assert set(self.body["error"]) == {"message", "type", "param", "code"}
        error: dict[str, Any] = self.body["error"]
        return error


class Api:
    """The function, asked by one caller."""

    def __init__(self, platform: BatchPlatform, principal: str | None = resources.SEARCH) -> None:
        self._application = build(platform)
        self.principal = principal

    def send(self, event: dict[str, Any]) -> Answer:
        if self.principal is not None:
            event["requestContext"]["authorizer"] = {"principal": self.principal}
        return self.send_as_it_is(event)

    def send_as_it_is(self, event: dict[str, Any]) -> Answer:
        answer = self._application.resolve(event, LambdaContext())
        json.dumps(answer)
        headers = {name.lower(): values[-1] for name, values in answer["multiValueHeaders"].items()}
        return Answer(answer["statusCode"], json.loads(answer["body"] or "{}"), headers)

    def get(self, path: str, **query: str) -> Answer:
        return self.send(proxy_event("GET", path, query=query))

    def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Answer:
        event = proxy_event("POST", path, headers={**JSON, **(headers or {})})
        return self.send({**event, "body": body if isinstance(body, str) else json.dumps(body)})

    def post_form(
        self,
        path: str,
        fields: dict[str, str],
        *,
        file: str = "file",
        content: bytes = b"{}",
        filename: str = "in.jsonl",
    ) -> Answer:
        event = proxy_event(
            "POST", path, headers={"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
        )
        body = form(fields, file=file, content=content, filename=filename)
        return self.send({**event, "body": base64.b64encode(body).decode(), "isBase64Encoded": True})

    def file(self) -> str:
        answer = self.post_form("/v1/files", {"purpose": "batch"})
        assert answer.status == 200
        return str(answer.body["id"])


def form(fields: dict[str, str], *, file: str, content: bytes, filename: str = "in.jsonl") -> bytes:
    """Return the body of a form."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{file}"; filename="{filename}"\r\n\r\n'
    return b"".join([*parts, head.encode(), content, f"\r\n--{BOUNDARY}--\r\n".encode()])
