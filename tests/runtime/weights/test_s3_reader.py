"""A node reads the mirrored copy without AWS's SDK: signature, credentials, faults and order of parts."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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
from weights.s3_reader import Credentials, ObjectStream, S3Error, S3Reader, signed_headers
from weights.settings import read_node_cache_settings

KEYS = {"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
SHARD = "model-00001-of-00002.safetensors"


class FakeServer(ThreadingHTTPServer):
    """S3 and the agent of Pod Identity on loopback."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        #: Status codes of the next answers, before proper ones.
        self.faults: list[int] = []
        #: Proper answers that are cut short.
        self.short = 0
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.expires = datetime(2100, 1, 1, tzinfo=UTC)
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path == "/credentials":
            answer = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "session"}
            self._answer(200, json.dumps({**answer, "Expiration": self.server.expires.isoformat()}).encode())
        elif self.server.faults:
            self._answer(self.server.faults.pop(0), b"<Code>SlowDown</Code>")
        elif "?list-type=2" in self.path:
            found = "".join(f"<Key>{key}</Key>" for key in self.server.objects)
            self._answer(200, found.encode())
        else:
            self._object()

    def _object(self) -> None:
        content = self.server.objects[self.path.removeprefix(f"/{BUCKET}/")]
        if "Range" in self.headers:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            content = content[first : last + 1]
        if self.server.short:
            self.server.short -= 1
            content = content[:-1]
        self._answer(200, content)

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
        running.shutdown()
        thread.join()


def reader_of(server: FakeServer, **environment: str) -> S3Reader:
    return S3Reader(BUCKET, {**KEYS, "AWS_ENDPOINT_URL": server.url, **environment}, pause_seconds=0.001)


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

    def opened(url: str, _: object) -> io.BytesIO:
        asked.append(url)
        return io.BytesIO(b"x")

    monkeypatch.setattr("weights.s3_reader._open", opened)
    S3Reader("weights", KEYS).read("a b/c")
    S3Reader("weights", {**KEYS, "AWS_REGION": "cn-north-1"}).read("c")
    assert asked == [
        "https://weights.s3.us-west-2.amazonaws.com/a%20b/c",
        "https://weights.s3.cn-north-1.amazonaws.com.cn/c",
    ]


def test_a_busy_s3_and_a_short_answer_are_asked_again(server: FakeServer, pauses: Pauses) -> None:
    server.objects["model"] = FILES[SHARD]
    server.faults, server.short = [503, 500], 1
    assert reader_of(server).read("model", 7, 1000) == FILES[SHARD][7:1007]
    assert len(server.asked) == 4
    assert len(pauses.seconds) == 3


def test_a_refusal_is_reported_at_once_with_the_answer_of_s3(server: FakeServer) -> None:
    server.faults = [403]
    with pytest.raises(S3Error, match=r"/model: 403 <Code>SlowDown"):
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
