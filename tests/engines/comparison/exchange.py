"""Sends a request to an endpoint and reads the whole response."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Response:
    """A response as it arrived."""

    status: int
    media_type: str
    body: str

    @property
    def content(self) -> Any:
        """The JSON body."""
        return json.loads(self.body)


def send(base_url: str, path: str, body: Any, *, timeout: float) -> Response:
    """Send a request. Bytes are sent as they are, None is a GET, everything else is sent as JSON."""
    with _asked(base_url, path, body, timeout) as response:
        media_type = (response.getheader("content-type") or "").partition(";")[0]
        return Response(response.status, media_type, response.read().decode(errors="replace"))


def stream(base_url: str, path: str, body: Any, *, timeout: float) -> Iterator[str]:
    """Send a request, and yield the lines of the response as they arrive."""
    with _asked(base_url, path, body, timeout) as response:
        for line in response:
            yield line.decode(errors="replace").strip()


@contextmanager
def _asked(base_url: str, path: str, body: Any, timeout: float) -> Iterator[http.client.HTTPResponse]:
    address = urlsplit(base_url)
    with closing(
        http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    ) as connection:
        if body is None:
            connection.request("GET", path)
        else:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("POST", path, data, _JSON)
        yield connection.getresponse()
