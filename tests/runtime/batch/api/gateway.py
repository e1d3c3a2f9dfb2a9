"""API Gateway on a loopback port: HTTP becomes the event of a Lambda proxy integration, and its answer HTTP.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
from collections.abc import Callable
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from batch.authorizer.handler import UnauthorizedError
from inference_blueprints.resources import root

#: Lambda takes no larger event.
MAX_EVENT_BYTES = 6 * 2**20
_BINARY = "multipart/form-data"
_SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>\w+)/\d{8}/(?P<region>[\w-]+)/execute-api/aws4_request, "
    r"SignedHeaders=(?P<headers>[\w;-]+), Signature=(?P<signature>\w+)"
)
#: What the API answers by itself.
GATEWAY_RESPONSES: dict[str, Any] = json.loads(
    (root() / "runtime/batch/api/gateway_responses.json").read_text(encoding="utf-8")
)


class Gateway:
    """A REST API in front of a function."""

    def __init__(
        self,
        function: Callable[[dict[str, Any], Any], dict[str, Any]],
        authorizer: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.function = function
        self.authorizer = authorizer
        self._principals: dict[str, str] = {}
        self._signers: dict[str, tuple[str, str]] = {}
        handler = type("Handler", (_Handler,), {"gateway": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        #: What the next requests are answered with before they reach the function, or after it, unseen.
        self.lose_answers = 0

    def __enter__(self) -> Gateway:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def token(self, principal: str) -> str:
        """Return a token that the authorizer takes for this caller's."""
        token = secrets.token_urlsafe(16)
        self._principals[token] = principal
        return token

    def knows(self, key: str, secret: str, arn: str) -> None:
        """Let a key be somebody's."""
        self._signers[key] = (secret, arn)

    def signer_of(self, method: str, address: str, headers: dict[str, str], body: bytes) -> str | None:
        """Return who signed a request; None if nobody did, for what was signed is something else."""
        match = _SIGNATURE.fullmatch(headers.get("authorization", ""))
        if match is None or match["key"] not in self._signers:
            return None
        secret, arn = self._signers[match["key"]]
        signed = {name: headers.get(name, "") for name in match["headers"].split(";")}
        request = AWSRequest(method, f"http://{headers['host']}{address}", headers=signed, data=body)
        # `add_auth` would take the time of now.
        request.context["timestamp"] = headers["x-amz-date"]
        auth = SigV4Auth(Credentials(match["key"], secret), "execute-api", match["region"])
        expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        return arn if expected == match["signature"] else None

    def event(self, method: str, address: str, headers: list[tuple[str, str]], body: bytes) -> dict[str, Any]:
        """Return the event of a request."""
        parts = urlsplit(address)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        single = dict(headers)
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        is_binary = kind.startswith(_BINARY)
        event = proxy_event(method, parts.path, headers=single, query=query)
        event["body"] = (base64.b64encode(body) if is_binary else body).decode() if body else None
        event["isBase64Encoded"] = is_binary
        return event

    def authorize(self, event: dict[str, Any]) -> tuple[str, dict[str, str]]:
        """Return the gateway response that refuses a request, empty if nothing does, and who sent it.

        Without an authorizer the tokens are those that `token` has returned.
        """
        headers = {name.lower(): value for name, value in (event["headers"] or {}).items()}
        if "authorization" not in headers:
            return "UNAUTHORIZED", {}
        if self.authorizer is None:
            principal = self._principals.get(headers["authorization"].removeprefix("Bearer "))
            return ("", {"principal": principal}) if principal else ("UNAUTHORIZED", {})
        arn = f"arn:aws:execute-api:us-west-2:123456789012:api/batch/{event['httpMethod']}{event['path']}"
        try:
            answer = self.authorizer({**event, "type": "REQUEST", "methodArn": arn})
        except UnauthorizedError as error:
            return ("UNAUTHORIZED" if str(error) == "Unauthorized" else "AUTHORIZER_FAILURE"), {}
        statement = answer["policyDocument"]["Statement"][0]
        is_allowed = statement["Effect"] == "Allow" and fnmatchcase(arn, statement["Resource"])
        return ("" if is_allowed else "ACCESS_DENIED"), answer["context"]


def proxy_event(
    method: str, path: str, *, headers: dict[str, str] | None = None, query: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the event of a request without a body."""
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in (headers or {}).items()},
        "queryStringParameters": query or None,
        "multiValueQueryStringParameters": {name: [value] for name, value in (query or {}).items()} or None,
        "pathParameters": {"proxy": path.lstrip("/")},
        "stageVariables": None,
        "requestContext": {
            "resourcePath": "/{proxy+}",
            "httpMethod": method,
            "path": f"/batch{path}",
            "stage": "batch",
            "requestId": "request",
            "apiId": "api",
            "accountId": "123456789012",
            "identity": {"sourceIp": "127.0.0.1", "userAgent": "test", "userArn": None},
        },
        "body": None,
        "isBase64Encoded": False,
    }


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    gateway: Gateway

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_PUT = do_GET  # noqa: N815 - http.server's names

    def _answer(self) -> None:
        body = self._body()
        event = self.gateway.event(self.command, self.path, list(self.headers.items()), body)
        if self.path.startswith("/iam/"):
            headers = {name.lower(): value for name, value in self.headers.items()}
            signer = self.gateway.signer_of(self.command, self.path, headers, body)
            refused, context = ("" if signer else "INVALID_SIGNATURE"), dict[str, Any]()
            event["requestContext"]["identity"]["userArn"] = signer
        else:
            refused, context = self.gateway.authorize(event)
        if len(json.dumps(event)) > MAX_EVENT_BYTES:
            refused = "REQUEST_TOO_LARGE"
        if refused:
            response = GATEWAY_RESPONSES[refused]
            text = json.dumps(response["body"]).replace(
                "$context.authorizer.reason", context.get("reason", "")
            )
            self._send(response["statusCode"], {"Content-Type": "application/json"}, text.encode())
            return
        event["requestContext"]["authorizer"] = context or None
        answer = self.gateway.function(event, None)
        if self.gateway.lose_answers:
            self.gateway.lose_answers -= 1
            self.close_connection = True
            return
        headers = {**(answer.get("headers") or {})}
        headers |= {name: values[-1] for name, values in (answer.get("multiValueHeaders") or {}).items()}
        self._send(answer["statusCode"], headers, (answer.get("body") or "").encode())

    def _body(self) -> bytes:
        """Return the whole body, also of a client that does not know its size when it begins."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
