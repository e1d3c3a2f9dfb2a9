"""A node reads the mirrored copy without AWS's SDK: signature, credentials, faults and order of parts."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NoReturn
from urllib.error import HTTPError

import boto3
import pytest
import time_machine
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from tests.runtime.conftest import Pauses
from tests.runtime.weights.conftest import BUCKET, FILES, MIB, Published
from weights import mirror, node_cache
from weights.hub import CorruptFileError
from weights.s3_reader import Credentials, ObjectStream, S3Error, S3Reader, S3Resource, signed_headers
from weights.settings import read_node_cache_settings

KEYS = {"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
SHARD = "model-00001-of-00002.safetensors"


class FakeServer(ThreadingHTTPServer):
    """S3 and the agent of Pod Identity on loopback."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        #: Faults of the next answers, before proper ones: status codes, or what happens to a body.
        self.faults: list[int | Fault] = []
        #: Set it to end a body that stalls.
        self.ended = threading.Event()
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.expires = datetime(2100, 1, 1, tzinfo=UTC)
        self.url = f"http://127.0.0.1:{self.server_port}"


#: A body breaks in its middle: the connection is closed or reset, nothing more comes, the length is that of
#: the half, the whole object comes for a part of it, or other bytes.
Fault = Literal["closed", "reset", "stalled", "clean", "whole", "shifted"]


class _Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path == "/credentials":
            answer = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "session"}
            self._answer(200, json.dumps({**answer, "Expiration": self.server.expires.isoformat()}).encode())
        elif self.server.faults and isinstance(self.server.faults[0], int):
            self._answer(int(self.server.faults.pop(0)), b"<Code>SlowDown</Code>")
        elif "?list-type=2" in self.path:
            found = "".join(f"<Key>{key}</Key>" for key in self.server.objects)
            self._answer(200, found.encode())
        else:
            self._object()

    def _object(self) -> None:
        fault = self.server.faults.pop(0) if self.server.faults else None
        whole = self.server.objects.get(self.path.removeprefix(f"/{BUCKET}/"))
        if whole is None:  # as a role is answered that may not list
            self._answer(403, b"<Code>AccessDenied</Code>")
            return
        etag = f'"{hashlib.md5(whole, usedforsecurity=False).hexdigest()}"'
        if self.headers.get("If-Match", etag) != etag:
            self._answer(412, b"<Code>PreconditionFailed</Code>")
            return
        status, content, headers = 200, whole, {"ETag": etag}
        if "Range" in self.headers and fault != "whole":
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            first += fault == "shifted"
            status, content = 206, whole[first : last + 1]
            headers["Content-Range"] = f"bytes {first}-{last}/{len(whole)}"
        half = len(content) // 2
        if fault == "clean":
            content = content[:half]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if fault not in ("closed", "reset", "stalled"):
            self.wfile.write(content)
            return
        self.wfile.write(content[:half])
        if fault == "stalled":
            self.server.ended.wait()
        if fault == "reset":  # a close without waiting sends RST instead of FIN (socket(7), SO_LINGER)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.ended.set()
        running.shutdown()
        thread.join()


def reader_of(server: FakeServer, *, timeout_seconds: float = 60, **environment: str) -> S3Reader:
    known = {**KEYS, "AWS_ENDPOINT_URL": server.url, **environment}
    return S3Reader(BUCKET, known, timeout_seconds=timeout_seconds)


@pytest.mark.parametrize("token", [None, "session"])
@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("https://weights.s3.us-west-2.amazonaws.com/huggingface/a/b%2Bc/model.safetensors", {}),
        ("https://weights.s3.us-west-2.amazonaws.com/a/b", {"Range": "bytes=0-8388607"}),
        ("https://weights.s3.us-west-2.amazonaws.com/?list-type=2&max-keys=1&prefix=a%2Fb.json", {}),
    ],
)
def test_the_signature_is_that_of_awss_own_library(
    url: str, headers: dict[str, str], token: str | None
) -> None:
    now = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
    request = AWSRequest("GET", url, headers=headers)
    with time_machine.travel(now, tick=False):
        S3SigV4Auth(BotocoreCredentials("AKID", "secret", token), "s3", "us-west-2").add_auth(request)
    signed = signed_headers(url, Credentials("AKID", "secret", token), "us-west-2", now, headers)
    assert signed["Authorization"] == request.headers["Authorization"]


def test_the_address_is_that_of_the_bucket_in_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def opened(url: str, _: object, __: float) -> NoReturn:
        asked.append(url)
        raise HTTPError(url, 404, "Not Found", Message(), io.BytesIO(b"x"))

    monkeypatch.setattr("weights.s3_reader._open", opened)
    for region, key in (("us-west-2", "a b/c"), ("cn-north-1", "c")):
        with pytest.raises(S3Error, match="404"):
            S3Reader("weights", {**KEYS, "AWS_REGION": region}).read(key)
    assert asked == [
        "https://weights.s3.us-west-2.amazonaws.com/a%20b/c",
        "https://weights.s3.cn-north-1.amazonaws.com.cn/c",
    ]


def ranges(server: FakeServer) -> list[str | None]:
    return [headers.get("range") for _, headers in server.asked]


def test_a_busy_s3_is_asked_again_after_random_and_growing_waits(server: FakeServer, pauses: Pauses) -> None:
    server.objects["model"] = FILES[SHARD]
    server.faults = [503, 500, 400]
    assert reader_of(server).object("model").read(7, 1000) == FILES[SHARD][7:1007]
    assert len(server.asked) == 4
    limits = [0.5, 1.0, 2.0]
    assert all(0 <= each <= limit for each, limit in zip(pauses.seconds, limits, strict=True))
    # Without chance, workers that start together would ask again together.
    assert pauses.seconds != limits


@pytest.mark.parametrize("fault", ["closed", "reset", "clean"])
def test_a_broken_body_goes_on_where_it_broke(server: FakeServer, pauses: Pauses, fault: Fault) -> None:
    """`IncompleteRead` is no OSError, and a reset no IncompleteRead; a clean early end raises nothing."""
    server.objects["model"] = FILES[SHARD]
    server.faults = [fault, fault]
    first, last = 7, 7 + 4 * MIB - 1
    assert reader_of(server).object("model").read(first, 4 * MIB) == FILES[SHARD][first : last + 1]
    starts = [int((each or "").removeprefix("bytes=").split("-")[0]) for each in ranges(server)]
    if fault == "reset":  # the kernel drops what was not read yet
        assert starts[0] == first <= starts[1] <= starts[2] < last
    else:
        assert starts == [first, first + 2 * MIB, first + 3 * MIB]
    assert len(pauses.seconds) == 2
    assert [headers.get("if-match") is None for _, headers in server.asked] == [True, False, False]


@pytest.mark.clock
def test_a_body_that_stalls_goes_on_where_it_stopped(server: FakeServer) -> None:
    server.objects["model"] = FILES[SHARD]
    server.faults = ["stalled"]
    read = reader_of(server, timeout_seconds=0.5).object("model").read
    assert read(0, 1000) == FILES[SHARD][:1000]
    assert ranges(server) == ["bytes=0-999", "bytes=500-999"]


@pytest.mark.parametrize("fault", ["closed", "clean"])
def test_a_whole_object_that_is_cut_goes_on_or_is_refused(
    server: FakeServer, pauses: Pauses, fault: Fault
) -> None:
    server.objects["manifest"] = b"0123456789"
    server.faults = [fault]
    if fault == "closed":
        assert reader_of(server).read("manifest") == b"0123456789"
        assert ranges(server) == [None, "bytes=5-9"]
    else:  # nothing says that there is more; who reads it knows its form
        assert reader_of(server).read("manifest") == b"01234"


@pytest.mark.parametrize("fault", ["whole", "shifted"])
def test_other_bytes_than_those_that_were_asked_for_are_not_mixed_in(
    server: FakeServer, pauses: Pauses, fault: Fault
) -> None:
    server.objects["model"] = FILES[SHARD]
    server.faults = [fault, "closed", fault]
    assert reader_of(server).object("model").read(100, 1000) == FILES[SHARD][100:1100]
    server.faults = [fault] * 50
    with pytest.raises(S3Error, match=r"/model: asked for bytes=0-9, got 20"):
        reader_of(server).object("model").read(0, 10)
    assert len(server.faults) == 40


def test_versions_of_an_object_are_not_mixed(server: FakeServer, pauses: Pauses) -> None:
    """Without the ETag, the end of the new object would follow the beginning of the former one."""
    server.objects["model"] = FILES[SHARD]
    server.faults = ["closed"]
    pauses.let_happen(lambda: server.objects.update(model=FILES[SHARD][::-1]))
    model = reader_of(server).object("model")
    with pytest.raises(S3Error, match=r"/model: was replaced by another version"):
        model.read(0, 1000)
    with pytest.raises(S3Error, match=r"/model: was replaced by another version"):
        model.read(1000, 1000)


def test_parts_that_are_requested_at_the_same_time_are_of_one_version() -> None:
    """No ETag is known yet when the first parts are requested, so S3 cannot compare them."""
    both, etags = threading.Barrier(2), ["1", "2"]

    def request(url: str, headers: Mapping[str, str]) -> HTTPResponse:
        assert "If-Match" not in headers
        both.wait(timeout=60)
        first, last = headers["Range"].removeprefix("bytes=").split("-")
        head = f"ETag: {etags.pop()}\r\nContent-Range: bytes {first}-{last}/8\r\nContent-Length: 4\r\n\r\n"
        answer = HTTPResponse(Said(f"HTTP/1.1 206 Partial Content\r\n{head}abcd".encode()))  # type: ignore[arg-type]
        answer.begin()
        return answer

    model = S3Resource("https://s3/model", request, 0.5)
    with ThreadPoolExecutor(2) as executor:
        parts = [executor.submit(model.read, first, 4) for first in (0, 4)]
    errors = [part.exception() for part in parts]
    assert sorted(str(error) for error in errors) == [
        "None",
        "https://s3/model: was replaced by another version while it was read",
    ]


def answering(*answers: str) -> tuple[S3Resource, list[Mapping[str, str]]]:
    """Return a resource with these answers, one after the other, and the headers of the requests."""
    left, asked = list(answers), list[Mapping[str, str]]()

    def request(url: str, headers: Mapping[str, str]) -> HTTPResponse:
        asked.append(headers)
        answer = HTTPResponse(Said(left.pop(0).replace("\n", "\r\n").encode()))  # type: ignore[arg-type]
        answer.begin()
        if answer.status >= 400:
            raise HTTPError(url, answer.status, answer.reason, answer.headers, answer)
        return answer

    return S3Resource("https://s3/model", request, 0.5), asked


def part(first: int, content: str, etag: str, length: int | None = None) -> str:
    """Return an answer to a request for a part, which announces other bytes than it has if asked to."""
    length = length or len(content)
    head = f"ETag: {etag}\nContent-Range: bytes {first}-{first + length - 1}/8\nContent-Length: {length}"
    return f"HTTP/1.1 206 Partial Content\n{head}\n\n{content}"


@pytest.mark.parametrize("etag", ['"8c7dd922ad47494fc02c388e12c00eac-12"', "8c7dd922ad47494f", 'W/"8c7d"'])
def test_every_kind_of_etag_lets_a_broken_part_go_on(pauses: Pauses, etag: str) -> None:
    """S3's are strong. A weak one in If-Match never matches, and would look like another version."""
    model, asked = answering(part(0, "abcd", etag, 8), part(4, "efgh", etag))
    assert model.read(0, 8) == b"abcdefgh"
    assert asked[1].get("If-Match") == (None if etag.startswith("W/") else etag)
    other, _ = answering(part(0, "abcd", etag, 8), part(4, "efgh", etag + "1"))
    with pytest.raises(S3Error, match="was replaced by another version"):
        other.read(0, 8)


@pytest.mark.parametrize("sent", ["abcdefgh and more", "abcdefgh"])
def test_no_more_bytes_are_taken_than_were_asked_for(sent: str) -> None:
    whole, _ = answering(f"HTTP/1.1 200 OK\nETag: 1\nContent-Length: 8\n\n{sent}")
    assert whole.read() == b"abcdefgh"
    some, asked = answering(part(0, sent, "1", len(sent)))
    assert some.read(0, 8) == b"abcdefgh"
    assert len(asked) == 1


def test_an_empty_object_is_read(server: FakeServer) -> None:
    server.objects["empty"] = b""
    model = reader_of(server).object("empty")
    assert model.read() == model.read(0, 0) == b""
    with ThreadPoolExecutor(1) as executor:
        assert ObjectStream(model.read, 0, part_bytes=4, parts=2, executor=executor).read(4) == b""
        for size in (4, 8):
            server.objects["full"] = b"abcdefgh"[:size]
            full = reader_of(server).object("full").read
            stream = ObjectStream(full, size, part_bytes=4, parts=2, executor=executor)
            got = b""
            while piece := stream.read(3):
                got += piece
            assert got == server.objects["full"]


def test_a_range_behind_the_end_is_an_error_with_the_answer_of_s3() -> None:
    model, asked = answering("HTTP/1.1 416 Gone\nContent-Length: 26\n\n<Code>InvalidRange</Code> ")
    with pytest.raises(S3Error, match="416 <Code>InvalidRange"):
        model.read(8, 4)
    assert len(asked) == 1


def test_an_answer_without_a_length_is_never_complete(pauses: Pauses) -> None:
    """Red if a connection that a proxy cuts without a word ends a manifest early."""
    model, _ = answering(*["HTTP/1.1 200 OK\nETag: 1\nConnection: close\n\nabcd"] * 10)
    with pytest.raises(S3Error, match="without a length may be cut short"):
        model.read()


class Said:
    """A connection on which the server said something."""

    def __init__(self, words: bytes) -> None:
        self._words = words

    def makefile(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._words)


def test_a_connection_that_always_breaks_ends_with_the_reason(server: FakeServer, pauses: Pauses) -> None:
    server.objects["model"] = FILES[SHARD]
    server.faults = ["clean"] * 50
    with pytest.raises(S3Error, match=r"/model: got 1023 of 1024 bytes"):
        reader_of(server).object("model").read(0, 1024)
    assert len(pauses.seconds) == 9
    assert max(pauses.seconds) <= 20


def test_a_refusal_is_reported_at_once_with_the_answer_of_s3(server: FakeServer) -> None:
    server.objects.clear()
    with pytest.raises(S3Error, match=r"/model: 403 <Code>AccessDenied"):
        reader_of(server).read("model")
    assert len(server.asked) == 1


def test_pod_identity_gives_the_credentials_and_new_ones_before_they_expire(
    server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("of-the-pod\n")
    server.objects["model"] = b"content"
    reader = reader_of(
        server,
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{server.url}/credentials",
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(tmp_path / "token"),
    )
    server.expires = datetime.now(UTC) + timedelta(minutes=4)
    for _ in range(3):
        assert reader.read("model") == b"content"
        server.expires = datetime.now(UTC) + timedelta(hours=1)
    paths = [path for path, _ in server.asked]
    assert paths.count("/credentials") == 2
    assert server.asked[0][1]["authorization"] == "of-the-pod"
    assert server.asked[1][1]["x-amz-security-token"] == "session"
    assert "Credential=ASIA/" in server.asked[1][1]["authorization"]


def test_parts_come_in_order_and_a_limited_number_is_requested_ahead() -> None:
    content = FILES[SHARD]
    requested: list[int] = []

    def read(first: int, size: int) -> bytes:
        requested.append(first)
        return content[first : first + size]

    with ThreadPoolExecutor(4) as executor:
        stream = ObjectStream(read, len(content), part_bytes=MIB, parts=3, executor=executor)
        got = stream.read(10)
        assert len(requested) <= 4
        while piece := stream.read(300_001):
            got += piece
    assert got == content


@pytest.fixture
def mirrored(published: Published, s3: Any, server: FakeServer) -> dict[str, str]:
    """A mirrored model, served over HTTP, and the environment of its sidecar."""
    assert mirror.main(published.environment) == 0
    for entry in boto3.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]:
        body = s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"]
        server.objects[entry["Key"]] = body.read()
    return {**published.environment, **KEYS, "AWS_ENDPOINT_URL": server.url, "NODE_CACHE_GIB": "1"}


def node(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    return {
        **environment,
        "NODE_CACHE_FOLDER": str(folder),
        "NODE_CACHE_WEIGHTS": "model",
        "NODE_CACHE_COMPILED": "a@1",
        "NODE_CACHE_READY_FILE": str(folder / "ready"),
    }


def started(environment: dict[str, str]) -> None:
    for lock in node_cache.start(read_node_cache_settings(environment), environment):
        lock.release()


def test_a_node_copies_from_the_mirror_and_never_asks_the_hub(
    published: Published, mirrored: dict[str, str], tmp_path: Path, server: FakeServer
) -> None:
    published.model.asked.clear()
    started(node(tmp_path, mirrored))
    place = tmp_path / "weights" / "model"
    assert {
        str(each.relative_to(place)): each.read_bytes() for each in place.rglob("*") if each.is_file()
    } == (FILES)
    assert published.model.asked == []
    before = len(server.asked)
    started(node(tmp_path, mirrored))
    assert len(server.asked) == before


def test_an_object_with_other_bytes_than_the_manifest_says_is_refused(
    published: Published, mirrored: dict[str, str], tmp_path: Path, server: FakeServer
) -> None:
    server.objects[f"{published.prefix}/{SHARD}"] = bytes(len(FILES[SHARD]))
    with pytest.raises(CorruptFileError, match=f"{SHARD}: expected sha256"):
        started(node(tmp_path, mirrored))
    assert not (tmp_path / "ready").exists()
    assert not (tmp_path / "weights" / "model" / SHARD).exists()


def test_a_node_waits_for_the_mirrors_manifest(
    published: Published,
    mirrored: dict[str, str],
    tmp_path: Path,
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest = server.objects.pop(f"{published.prefix}.json")
    waits: list[float] = []

    def appear(seconds: float) -> None:
        waits.append(seconds)
        server.objects[f"{published.prefix}.json"] = manifest

    monkeypatch.setattr(time, "sleep", appear)
    started(node(tmp_path, mirrored))
    assert waits
    assert (tmp_path / "weights" / "model" / SHARD).exists()
