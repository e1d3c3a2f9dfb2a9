"""AWS on a loopback port; its S3 refuses what the real one refuses of a presigned address."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


@dataclass(frozen=True)
class Seen:
    """A request that came with a signature in its address."""

    path: str
    authorization: str | None


class Emulator:
    """moto behind one address."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.seen: list[Seen] = []

    def __enter__(self) -> Emulator:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if "X-Amz-Signature" in query:
            authorization = environ.get("HTTP_AUTHORIZATION")
            self.seen.append(Seen(environ["PATH_INFO"], authorization))
            if authorization is not None:
                # https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
                start_response("400 Bad Request", [("Content-Type", "application/xml")])
                return [
                    b"<Error><Code>InvalidArgument</Code>"
                    b"<Message>Only one auth mechanism allowed</Message></Error>"
                ]
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer
