"""The agent's endpoints: task metadata version 4 and task scale-in protection.

Sources: task-metadata-endpoint-v4.html, task-scale-in-protection-endpoint.html. Here they are on a
port of their own, and the path begins with a token of the container.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_PROTECTION: Final = "/task-protection/v1/state"
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400


class TaskFacts:
    """What the endpoints answer for a container.

    container, task: Return the documents of ``${ECS_CONTAINER_METADATA_URI_V4}`` and of its ``/task``.
    protection: Reads the state (None) or changes it (the request) and returns the answer.
    """

    def __init__(
        self,
        container: Callable[[], Mapping[str, Any]],
        task: Callable[[], Mapping[str, Any]],
        protection: Callable[[Mapping[str, Any] | None], Mapping[str, Any]],
    ) -> None:
        self.container = container
        self.task = task
        self.protection = protection


class AgentEndpoint:
    """Serves the endpoints of every container. Use `close` at the end.

    address: Address to listen on.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._facts: dict[str, TaskFacts] = {}
        facts = self._facts

        class _EndpointHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_PUT(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                try:
                    request = json.loads(self.rfile.read(length) or b"{}")
                except ValueError:
                    self._send({"error": {"Code": "InvalidParameterException"}}, _BAD_REQUEST)
                    return
                self._answer(request)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def _answer(self, request: Mapping[str, Any] | None) -> None:
                _, kind, token, *rest = [*self.path.split("/", 3), "", ""]
                path = "/" + rest[0] if rest[0] else ""
                known = facts.get(token)
                if known is None:
                    self._send({"error": "unknown container"}, _NOT_FOUND)
                elif kind == "api" and path == _PROTECTION:
                    answer = known.protection(request)
                    self._send(answer, _BAD_REQUEST if "error" in answer else 200)
                elif kind == "v4" and request is None and path in ("", "/task"):
                    self._send(known.task() if path else known.container(), 200)
                else:
                    self._send({"error": f"no such path: {path}"}, _NOT_FOUND)

            def _send(self, document: Mapping[str, Any], status: int) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer((address, 0), _EndpointHandler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="ecs-agent-endpoint", daemon=True).start()

    def add(self, token: str, facts: TaskFacts) -> dict[str, str]:
        """Serve a container, and return its variables."""
        self._facts[token] = facts
        address = f"http://{self._address}:{self._server.server_address[1]}"
        return {
            "ECS_CONTAINER_METADATA_URI_V4": f"{address}/v4/{token}",
            "ECS_AGENT_URI": f"{address}/api/{token}",
        }

    def remove(self, token: str) -> None:
        """Forget a container."""
        self._facts.pop(token, None)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
