"""STS on a loopback port: it tells whose signature a request has, and refuses what is signed otherwise."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

_ANSWER = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <GetCallerIdentityResult><Arn>{arn}</Arn><UserId>X</UserId><Account>123456789012</Account>
  </GetCallerIdentityResult></GetCallerIdentityResponse>"""


class Sts:
    """A regional STS that knows some keys."""

    def __init__(self) -> None:
        self.callers: dict[str, tuple[str, str]] = {}
        self.requests: list[str] = []
        #: Sent instead of an answer: a status and headers.
        self.instead: tuple[int, dict[str, str]] | None = None
        handler = type("Handler", (_Handler,), {"sts": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def knows(self, key: str, secret: str, arn: str) -> Credentials:
        """Let a key be somebody's, and return it."""
        self.callers[key] = (secret, arn)
        return Credentials(key, secret)

    def answer(self, path: str, headers: dict[str, str]) -> tuple[int, str]:
        """Return status and body for a request, by its signature alone."""
        values = dict(parse_qsl(urlsplit(path).query))
        key, _, region, *_ = values["X-Amz-Credential"].split("/")
        if key not in self.callers:
            return 403, "InvalidClientTokenId"
        secret, arn = self.callers[key]
        unsigned = {name: values[name] for name in ("Action", "Version")}
        signed = [name for name in values["X-Amz-SignedHeaders"].split(";") if name != "host"]
        request = AWSRequest(
            "GET",
            f"https://{headers['host']}/?{urlencode(unsigned)}",
            headers={name: headers.get(name, "") for name in signed},
        )
        credentials = Credentials(key, secret, values.get("X-Amz-Security-Token"))
        auth = SigV4QueryAuth(credentials, "sts", region, expires=int(values["X-Amz-Expires"]))
        # `add_auth` would take the time of now.
        request.context["timestamp"] = values["X-Amz-Date"]
        auth._modify_request_before_signing(request)
        canonical = auth.canonical_request(request)
        expected = auth.signature(auth.string_to_sign(request, canonical), request)
        return (200, _ANSWER.format(arn=arn)) if expected == values["X-Amz-Signature"] else (403, "Signature")


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    sts: Sts

    def do_GET(self) -> None:
        self.sts.requests.append(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.sts.instead is not None:
            status, sent = self.sts.instead
            body = ""
        else:
            sent = {}
            status, body = self.sts.answer(self.path, headers)
        self.send_response(status)
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""
