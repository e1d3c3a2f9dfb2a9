"""A server behind the filter: it streams, notes what reaches it, and ends when it is asked to.

``python small_server.py NOTES --host HOST --port PORT``
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(BaseHTTPRequestHandler):
    """Answers with as many chunks as ``max_tokens`` says, half a second apart; 13 ends it, 404 is refused."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(json.dumps({"body": body, "path": self.path, "headers": dict(self.headers)}))
        if body["max_tokens"] == 13:
            os._exit(1)
        if body["max_tokens"] == 404:
            self._refuse()
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for place in range(body["max_tokens"]):
                self.wfile.write(b"9\r\ndata: %03d\r\n" % place)
                time.sleep(0.5)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            note(json.dumps("hung up"))

    def _refuse(self) -> None:
        """Answer as Dynamo's frontend does if it does not have the model."""
        error = json.dumps({"message": "Model not found", "type": "Not Found", "code": 404}).encode()
        self.send_response(404)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(error), error))

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def note(text: str) -> None:
    with Path(sys.argv[1]).open("a") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    place = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    ThreadingHTTPServer((place["--host"], int(place["--port"])), Server).serve_forever()
