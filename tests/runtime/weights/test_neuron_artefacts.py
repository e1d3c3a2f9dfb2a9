"""Compiled artefacts in S3. Bugs: half an attempt is loaded, two count, or a lost worker holds others up."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import moto
import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError, ResponseStreamingError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from tests.runtime.conftest import Pauses
from weights.neuron_artefacts import ArtefactSettings, KeptArtefacts, keep, load, main, read_artefact_settings

BUCKET = "artefacts-of-the-platform"
KEY = "neuron/0123"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto.mock_aws():
        client = boto3.client("s3", region_name="us-west-2")
        place = {"LocationConstraint": "us-west-2"}
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
        yield client


@pytest.fixture
def worker(tmp_path: Path, s3: Any) -> Callable[..., ArtefactSettings]:
    """Return a function that makes the settings of one worker, with a folder of its own."""

    def make(
        name: str,
        *,
        claim_seconds: float = 7200,
        compile_seconds: float = 7200,
        health_url: str = "http://127.0.0.1:9/",
    ) -> ArtefactSettings:
        return ArtefactSettings(BUCKET, KEY, tmp_path / name, claim_seconds, compile_seconds, health_url)

    return make


def compile_in(settings: ArtefactSettings, text: str) -> None:
    """Write what a compiler writes: files in folders."""
    module = settings.folder / "neuron" / "compile_cache" / "abc"
    module.mkdir(parents=True, exist_ok=True)
    (module / "graph.neff").write_text(text, encoding="utf-8")


def claim_time(s3: Any) -> datetime:
    written: datetime = s3.get_object(Bucket=BUCKET, Key=f"{KEY}/claim")["LastModified"]
    return written


def age_claim(s3: Any) -> None:
    """Make the claim an hour old, as S3 would show it."""
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    claim = backend.get_object(BUCKET, f"{KEY}/claim")
    assert claim is not None
    claim.last_modified -= timedelta(hours=1)


def neff_of(settings: ArtefactSettings) -> str:
    return (settings.folder / "neuron/compile_cache/abc/graph.neff").read_text(encoding="utf-8")


@contextmanager
def server_with(statuses: Callable[[], int]) -> Iterator[str]:
    """Return the address of a worker's server, which answers with these statuses."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(statuses())
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/health"
    server.shutdown()
    server.server_close()


@pytest.fixture
def healthy() -> Iterator[str]:
    with server_with(lambda: 200) as url:
        yield url


def test_one_worker_compiles_and_the_next_loads(worker: Any, healthy: str) -> None:
    first, second = worker("first", health_url=healthy), worker("second")
    load(first)
    compile_in(first, "program")
    assert keep(first) is True
    load(second)
    assert neff_of(second) == "program"
    assert keep(second) is None, "a worker that loaded stores nothing"


def test_a_worker_waits_while_another_compiles(worker: Any, healthy: str, pauses: Pauses) -> None:
    first, second = worker("first", health_url=healthy), worker("second")
    load(first)

    def finish() -> None:
        compile_in(first, "program")
        keep(first)

    pauses.let_happen(bool, finish)
    load(second, period_seconds=7.0)
    assert pauses.seconds == [7.0, 7.0], "it started without artefacts"
    assert neff_of(second) == "program"


def test_a_claim_that_is_too_old_is_replaced(worker: Any, healthy: str) -> None:
    """The first worker was lost with its node: the next one compiles, and does not wait forever."""
    load(worker("lost"))
    second = worker("second", claim_seconds=-1, health_url=healthy)
    load(second, period_seconds=0.01)
    compile_in(second, "second")
    assert keep(second) is True


@pytest.mark.parametrize(
    ("compile_seconds", "is_renewed"),
    [pytest.param(3600, True, id="compiles"), pytest.param(0, False, id="hangs")],
)
def test_the_claim_of_a_worker_is_renewed_while_it_compiles(
    compile_seconds: float, *, is_renewed: bool, worker: Any, s3: Any, pauses: Pauses
) -> None:
    """Bugs: a second worker compiles because the first is slow, or a worker that hangs blocks all others."""
    seen: list[datetime] = []

    def status() -> int:
        seen.append(claim_time(s3))
        return 200 if len(seen) > 1 else 503

    with server_with(status) as url:
        settings = worker("slow", compile_seconds=compile_seconds, health_url=url)
        load(settings)
        age_claim(s3)
        before = claim_time(s3)
        assert keep(settings, period_seconds=7.0) is True
    assert pauses.seconds == [7.0]
    assert (seen[-1] > before) is is_renewed


def test_a_claim_that_another_worker_has_taken_is_not_renewed(worker: Any, s3: Any) -> None:
    """Bug: a worker that comes back extends the claim of its successor, which may be lost."""
    first = worker("first")
    load(first)
    load(worker("second", claim_seconds=-1), period_seconds=0.01)
    before = s3.get_object(Bucket=BUCKET, Key=f"{KEY}/claim")
    KeptArtefacts(first).renew((first.folder / ".attempt").read_text(encoding="utf-8"))
    after = s3.get_object(Bucket=BUCKET, Key=f"{KEY}/claim")
    assert (before["Body"].read(), before["LastModified"]) == (after["Body"].read(), after["LastModified"])


def test_storing_is_tried_again_after_an_error_of_s3(
    worker: Any, healthy: str, monkeypatch: pytest.MonkeyPatch, pauses: Pauses
) -> None:
    """Bug: the container ends at the first error, and nothing restarts it on ECS."""
    settings = worker("first", health_url=healthy)
    load(settings)
    compile_in(settings, "program")
    errors: list[Exception] = [
        S3UploadFailedError("Failed to upload graph.neff: SlowDown"),
        EndpointConnectionError(endpoint_url="https://s3"),
    ]
    real = KeptArtefacts.store

    def fail_first(kept: KeptArtefacts, attempt: str) -> bool:
        if errors:
            raise errors.pop()
        return real(kept, attempt)

    monkeypatch.setattr(KeptArtefacts, "store", fail_first)
    assert keep(settings, period_seconds=7.0) is True
    assert pauses.seconds == [7.0, 7.0]
    load(worker("second"))


def test_one_of_two_attempts_counts(worker: Any, healthy: str) -> None:
    """The lost worker comes back: its files do not mix with those that count."""
    slow = worker("slow", health_url=healthy)
    load(slow)
    fast = worker("fast", claim_seconds=-1, health_url=healthy)
    load(fast, period_seconds=0.01)
    compile_in(fast, "fast")
    assert keep(fast) is True
    compile_in(slow, "slow")
    assert keep(slow) is False
    third = worker("third")
    load(third)
    assert neff_of(third) == "fast"


def test_what_a_killed_worker_left_is_removed(worker: Any) -> None:
    """It turns red if a compiler starts with half of what an earlier one made."""
    first = worker("host")
    load(first)
    compile_in(first, "half")
    again = worker("host", claim_seconds=0)
    load(again)
    assert [each.name for each in again.folder.iterdir()] == [".attempt"]


def test_a_body_that_is_cut_short_is_asked_for_again(
    worker: Any, healthy: str, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """boto3 repeats requests, and not the reading of a body: one cut would end the worker's start."""
    first = worker("first", health_url=healthy)
    load(first)
    compile_in(first, "code")
    keep(first)
    marker, broken = KeptArtefacts.complete_attempt, [ReadTimeoutError, ResponseStreamingError]

    def cut(kept: KeptArtefacts) -> dict[str, Any] | None:
        if broken:
            raise broken.pop()(endpoint_url="s3", error="cut")
        return marker(kept)

    monkeypatch.setattr(KeptArtefacts, "complete_attempt", cut)
    load(second := worker("second"))
    assert neff_of(second) == "code"
    assert len(pauses.seconds) == 2


def test_half_an_attempt_is_not_loaded(worker: Any, s3: Any) -> None:
    """A job that ends before its marker has stored files, and they count for nothing."""
    s3.put_object(Bucket=BUCKET, Key=f"{KEY}/lost/neuron/graph.neff", Body=b"half")
    settings = worker("next")
    load(settings)
    assert KeptArtefacts(settings).complete_attempt() is None
    assert not (settings.folder / "neuron").exists()


def test_a_file_of_another_size_ends_the_start(worker: Any, s3: Any) -> None:
    marker = {"attempt": "a", "files": {"graph.neff": 5}}
    s3.put_object(Bucket=BUCKET, Key=f"{KEY}/complete.json", Body=json.dumps(marker).encode())
    s3.put_object(Bucket=BUCKET, Key=f"{KEY}/a/graph.neff", Body=b"four")
    with pytest.raises(ValueError, match=r"graph.neff: got 4 bytes, the marker says 5"):
        load(worker("next"))


def test_missing_variables_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load"], {"ARTEFACTS_BUCKET": BUCKET}) == 2
    message = capsys.readouterr().err
    for name in ("KEY", "FOLDER", "CLAIM_SECONDS", "COMPILE_SECONDS", "HEALTH_URL"):
        assert f"ARTEFACTS_{name}" in message
    assert main(["fetch"], {}) == 2


def test_settings_are_read(tmp_path: Path) -> None:
    values = {
        "BUCKET": "b",
        "KEY": "neuron/1/",
        "FOLDER": str(tmp_path),
        "CLAIM_SECONDS": "60",
        "COMPILE_SECONDS": "90",
    }
    environment = {f"ARTEFACTS_{name}": value for name, value in values.items()}
    read = read_artefact_settings({**environment, "ARTEFACTS_HEALTH_URL": "http://127.0.0.1:8000/health"})
    assert (read.key, read.claim_seconds, read.compile_seconds) == ("neuron/1", 60.0, 90.0)
