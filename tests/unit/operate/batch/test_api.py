"""The API's client goes on where a connection broke, and takes no other bytes for those that it had."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_contracts.errors import UserError

CONTENT = bytes(range(256)) * 40_000


class Storage(ThreadingHTTPServer):
    """The API's redirect and S3 in one, which breaks off after some bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        #: After how many bytes each answer breaks off; the rest are whole.
        self.breaks: list[int] = []
        self.etag = '"first"'
        self.signatures: list[str | None] = []
        self.ranges: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Storage

    def do_GET(self) -> None:
        if self.path.startswith("/iam/v1/"):
            self.send_response(302)
            self.send_header("Location", f"{self.server.address}/object")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.server.signatures.append(self.headers["Authorization"])
        self.server.ranges.append(self.headers["Range"])
        start = int((self.headers["Range"] or "bytes=0-")[len("bytes=") : -1])
        changed = self.headers["If-Match"] not in {None, self.server.etag}
        status = 412 if changed else 416 if start == len(CONTENT) else 206 if start else 200
        body = CONTENT[start:] if status < 300 else b""
        self.send_response(status)
        self.send_header("ETag", self.server.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.breaks.pop(0)] if self.server.breaks else body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def storage() -> Iterator[Storage]:
    with Storage() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def sign(_method: str, _address: str, headers: Mapping[str, str], _body: bytes) -> dict[str, str]:
    return {**headers, "Authorization": "signature"}


def pieces(storage: Storage) -> Iterator[bytes]:
    return BatchApiClient(f"{storage.address}/v1", sign).content("file-1")


def test_what_breaks_off_goes_on_from_there_without_the_signature(storage: Storage) -> None:
    storage.breaks = [3_000_000, 0, 2_500_000]
    assert b"".join(pieces(storage)) == CONTENT
    assert storage.signatures == [None] * 4
    starts = [int(each[len("bytes=") : -1]) for each in storage.ranges[1:] if each]
    assert starts == sorted(starts)
    assert starts[0] >= 2 * 2**20


def test_a_file_that_is_written_anew_meanwhile_is_no_result(storage: Storage) -> None:
    storage.breaks = [3_000_000]
    reading = pieces(storage)
    next(reading)
    storage.etag = '"second"'
    with pytest.raises(UserError, match="changed while it was read"):
        list(reading)


def test_breaks_without_a_byte_end_it(storage: Storage) -> None:
    storage.breaks = [0] * 9
    with pytest.raises(UserError, match="reading stopped at byte 0"):
        list(pieces(storage))
    assert len(storage.breaks) == 4
