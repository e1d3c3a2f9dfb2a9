"""A node gets one right copy, whoever starts together, dies or lacks room. A copy in use is never deleted."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inference_blueprints.resources import root
from tests.runtime.waiting_processes import waits_for_lock
from tests.runtime.weights.conftest import FILES, MIB, Published
from tests.runtime.weights.fake_hub import COMMIT, FakeHub
from weights import node_cache
from weights.hub import CheckedStream, HubFile
from weights.node_store import NodeStore, NodeStoreError
from weights.settings import read_node_cache_settings

PATIENCE_SECONDS = 60.0
SHARDS = sorted(path for path in FILES if path.endswith(".safetensors"))


class Pod:
    """The sidecar of a pod, as its own process."""

    def __init__(self, number: int, folder: Path, hub: FakeHub, published: Published, gib: int) -> None:
        self.ready_file = folder.parent / f"ready-{number}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weights.node_cache"],
            env={
                **os.environ,
                **environment(folder, published, gib=gib, ready_file=self.ready_file),
                "PYTHONPATH": str(root() / "runtime"),
                "PYTHONUNBUFFERED": "1",
                "HF_ENDPOINT": hub.endpoint,
                "HF_HOME": str(folder.parent / "hub"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.02)

    def wait_until_ready(self) -> None:
        self.wait_until(self.ready_file.exists)

    def end(self, number: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(number)
        return self.output()

    def output(self) -> str:
        return self.process.communicate(timeout=PATIENCE_SECONDS)[0]


Start = Callable[..., Pod]


def environment(folder: Path, published: Published, *, gib: int, ready_file: Path) -> dict[str, str]:
    return {
        "NODE_CACHE_FOLDER": str(folder),
        "NODE_CACHE_GIB": str(gib),
        "NODE_CACHE_WEIGHTS": name_of(published),
        "NODE_CACHE_COMPILED": "qwen3-main@0011aabb",
        "NODE_CACHE_READY_FILE": str(ready_file),
        "WEIGHTS_REPOSITORY": published.repository,
        "WEIGHTS_REVISION": COMMIT,
    }


def name_of(published: Published) -> str:
    return f"{published.repository.replace('/', '--')}@{COMMIT}"


def copied(folder: Path, published: Published) -> dict[str, bytes]:
    """Return the files that an engine finds, by their path."""
    place = folder / "weights" / name_of(published)
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "node"
    place.mkdir()
    return place


@pytest.fixture
def start(hub: FakeHub, folder: Path) -> Iterator[Start]:
    pods: list[Pod] = []

    def run(published: Published, *, gib: int = 1) -> Pod:
        pods.append(Pod(len(pods), folder, hub, published, gib))
        return pods[-1]

    yield run
    for pod in pods:
        if pod.process.poll() is None:
            pod.process.kill()
            pod.process.communicate()


@pytest.mark.clock
def test_pods_that_start_together_download_once(published: Published, start: Start, folder: Path) -> None:
    published.model.withheld.add(SHARDS[0])
    pods = [start(published), start(published)]
    pods[0].wait_until(lambda: any(waits_for_lock(pod.process.pid) for pod in pods))
    published.model.withheld.clear()
    for pod in pods:
        pod.wait_until_ready()
    assert copied(folder, published) == FILES
    assert sorted(path for path, _ in published.model.asked) == sorted(filter(FILES.get, FILES))
    outputs = [pod.end() for pod in pods]
    assert [pod.process.returncode for pod in pods] == [0, 0]
    assert sum("waiting for another pod" in output for output in outputs) == 1
    assert (folder / "compiled" / "qwen3-main@0011aabb").is_dir()


@pytest.mark.clock
def test_a_pod_continues_what_a_killed_one_began(published: Published, start: Start, folder: Path) -> None:
    published.model.withheld.add(SHARDS[0])
    first = start(published)
    first.wait_until(lambda: copied(folder, published).keys() == FILES.keys() - {SHARDS[0]})
    first.end(signal.SIGKILL)
    assert list((folder / "parts" / f"weights--{name_of(published)}").iterdir())

    published.model.withheld.clear()
    published.model.asked.clear()
    start(published).wait_until_ready()
    assert published.model.asked == [(SHARDS[0], 0)]
    assert copied(folder, published) == FILES
    assert list((folder / "parts").iterdir()) == []


@pytest.mark.clock
def test_a_waiting_pod_takes_over_from_a_killed_one(published: Published, start: Start, folder: Path) -> None:
    published.model.withheld.add(SHARDS[0])
    first = start(published)
    first.wait_until(lambda: bool(published.model.asked))
    second = start(published)
    second.wait_until(lambda: waits_for_lock(second.process.pid))
    published.model.withheld.clear()
    first.end(signal.SIGKILL)
    second.wait_until_ready()
    assert copied(folder, published) == FILES


@pytest.mark.clock
def test_a_pod_that_is_deleted_while_it_copies_ends_at_once(published: Published, start: Start) -> None:
    published.model.withheld.add(SHARDS[0])
    pod = start(published)
    pod.wait_until(lambda: bool(published.model.asked))
    pod.end()
    assert pod.process.returncode == 0
    assert not pod.ready_file.exists()


@pytest.mark.clock
def test_wrong_bytes_are_refused_and_nothing_is_announced(
    published: Published, start: Start, folder: Path
) -> None:
    published.model.sent_instead[SHARDS[0]] = bytes(len(FILES[SHARDS[0]]))
    pod = start(published)
    output = pod.output()
    assert pod.process.returncode == 1
    assert f"error: {SHARDS[0]}: expected sha256:" in output
    assert SHARDS[0] not in copied(folder, published)
    assert not pod.ready_file.exists()
    assert list((folder / "complete").iterdir()) == []

    published.model.sent_instead.clear()
    start(published).wait_until_ready()
    assert copied(folder, published) == FILES


@pytest.mark.clock
def test_a_copy_in_use_is_kept_and_one_that_is_not_makes_room(
    publish: Callable[..., Published], start: Start, folder: Path
) -> None:
    files = {"config.json": b"{}", "model.safetensors": bytes(60 * MIB)}
    held, published = "weights/acme--held@1", publish(files)
    store = NodeStore(folder, 1024 * MIB)
    # A sparse file: its size counts.
    add(store, held, 1000)
    lock = store.lock(held, exclusive=False)
    refused = start(published)
    output = refused.output()
    assert refused.process.returncode == 1
    assert "needs 0.1 GiB, the bound of the node's cache is 1.0 GiB" in output
    assert f"in use: {held} (1.0 GiB); raise disk.nodeCacheGib of the pool by 1" in output
    assert store.is_complete(held)

    lock.release()
    start(published).wait_until_ready()
    assert copied(folder, published) == files
    assert list(store.folder(held).iterdir()) == []
    assert [path.stem for path in (folder / "complete").iterdir()] == [f"weights--{name_of(published)}"]


def add(store: NodeStore, entry: str, mib: int) -> None:
    """Complete an entry of a size and give its lock back."""
    lock = store.lock(entry, exclusive=True)
    file = HubFile("model.safetensors", mib * MIB, "sha256:00")
    try:
        store.reserve(entry, file.size)
        store.begin(entry)
        with store.new_file(entry, file) as stream:
            stream.truncate(file.size)
        store.complete(entry, [file])
    finally:
        lock.release()


def used_at(folder: Path, entry: str, seconds: float) -> None:
    os.utime(folder / "locks" / entry.replace("/", "--"), (seconds, seconds))


class LookingSource:
    """A model without files, which looks at the lock of an entry when it is asked for them."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self.can_be_shared: bool | None = None

    def files(self) -> list[HubFile]:
        with self._lock.open() as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                self.can_be_shared = False
            else:
                self.can_be_shared = True
        return []

    def open(self, file: HubFile) -> CheckedStream:
        raise AssertionError(file)


def test_an_entry_is_held_alone_while_it_is_filled_and_shared_then(folder: Path) -> None:
    """With a shared lock, two pods that start together would write the same files."""
    store, source = NodeStore(folder, 100 * MIB), LookingSource(folder / "locks" / "weights--a")
    lock = node_cache.hold(store, "weights/a", source)
    assert source.can_be_shared is False
    assert store.is_complete("weights/a")
    source.files()
    assert source.can_be_shared is True
    lock.release()


@pytest.mark.parametrize("order", ["abc", "bca", "cab", "cba"])
def test_what_was_used_longest_ago_is_deleted_first_and_no_more_than_needed(folder: Path, order: str) -> None:
    """Neither the first of the alphabet, nor what was copied first, nor the largest."""
    store = NodeStore(folder, 100 * MIB)
    for entry, mib in zip("bca", (31, 30, 29), strict=True):
        add(store, f"weights/{entry}", mib)
    for number, entry in enumerate(order):
        used_at(folder, f"weights/{entry}", 100 + number)
    add(store, "weights/d", 30)
    assert [each for each in "abcd" if store.is_complete(f"weights/{each}")] == sorted(order[1:] + "d")
    used_at(folder, "weights/d", 400)
    add(store, "weights/e", 60)
    assert [each for each in "abcde" if store.is_complete(f"weights/{each}")] == ["d", "e"]


def test_a_copy_in_use_counts_as_used_when_another_looks_for_room(folder: Path) -> None:
    """A task of ECS notes its start only: what it holds for days would be the first to go when it ends."""
    store = NodeStore(folder, 100 * MIB)
    for entry in ("held", "idle"):
        add(store, f"weights/{entry}", 30)
    used_at(folder, "weights/held", 100)
    used_at(folder, "weights/idle", 200)
    lock = store.lock("weights/held", exclusive=False)
    used_at(folder, "weights/held", 100)
    add(store, "weights/new", 60)
    lock.release()
    assert not store.is_complete("weights/idle")
    used_at(folder, "weights/new", 300)
    add(store, "weights/newer", 60)
    assert store.is_complete("weights/held")
    assert not store.is_complete("weights/new")


def test_compiled_kernels_count_and_are_deleted_when_no_pod_holds_them(folder: Path) -> None:
    store = NodeStore(folder, 100 * MIB)
    held = store.lock("compiled/release@1", exclusive=False)
    for entry in ("compiled/release@1", "compiled/release@0"):
        store.lock(entry, exclusive=False).release()
        (store.folder(entry) / "triton").mkdir(parents=True)
        (store.folder(entry) / "triton" / "kernel.so").write_bytes(bytes(40 * MIB))
    add(store, "weights/a", 50)
    assert not (store.folder("compiled/release@0") / "triton").exists()
    assert (store.folder("compiled/release@1") / "triton").exists()
    with pytest.raises(NodeStoreError, match=r"compiled/release@1"):
        add(store, "weights/b", 70)
    held.release()
    add(store, "weights/b", 70)
    assert not (store.folder("compiled/release@1") / "triton").exists()


def test_what_is_being_written_counts_with_its_whole_size(folder: Path) -> None:
    store = NodeStore(folder, 100 * MIB)
    writing = store.lock("weights/a", exclusive=True)
    store.reserve("weights/a", 80 * MIB)
    with pytest.raises(NodeStoreError, match="in use: weights/a"):
        add(store, "weights/b", 30)
    writing.release()
    add(store, "weights/b", 30)


def test_a_full_disk_is_reported_and_leaves_no_partial_file(folder: Path) -> None:
    store = NodeStore(folder, 100 * MIB)
    file = HubFile("model.safetensors", MIB, "sha256:00")
    store.begin("weights/a")
    # The device on which every write fails as on a full disk.
    part = folder / "parts" / "weights--a" / hashlib.sha256(file.path.encode()).hexdigest()
    part.symlink_to("/dev/full")
    with (
        pytest.raises(NodeStoreError, match=r"disk is full: model.safetensors needs .* are free") as caught,
        store.new_file("weights/a", file) as stream,
    ):
        stream.write(bytes(MIB))
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert not part.is_symlink()
    assert list(store.folder("weights/a").iterdir()) == []


def test_two_files_with_the_same_content_are_copied_at_the_same_time(folder: Path) -> None:
    store = NodeStore(folder, 100 * MIB)
    store.begin("weights/a")
    files = [HubFile(path, 2, "sha256:00") for path in ("config.json", "original/config.json")]
    with store.new_file("weights/a", files[0]) as first, store.new_file("weights/a", files[1]) as second:
        first.write(b"{}")
        second.write(b"{}")
    assert [(store.folder("weights/a") / file.path).read_bytes() for file in files] == [b"{}", b"{}"]


@pytest.mark.parametrize("path", ["../b/model.safetensors", "/etc/passwd"])
def test_a_path_outside_the_folder_is_refused(folder: Path, path: str) -> None:
    store = NodeStore(folder, 100 * MIB)
    store.begin("weights/a")
    with (
        pytest.raises(NodeStoreError, match="not a path within a repository"),
        store.new_file("weights/a", HubFile(path, 1, "sha256:00")),
    ):
        pass


@pytest.mark.parametrize("kept", [None, 0, MIB - 1, MIB + 1])
def test_a_copy_with_a_missing_or_cut_file_is_not_complete(folder: Path, kept: int | None) -> None:
    store = NodeStore(folder, 100 * MIB)
    add(store, "weights/a", 1)
    assert store.is_complete("weights/a")
    file = store.folder("weights/a") / "model.safetensors"
    file.unlink() if kept is None else os.truncate(file, kept)
    assert not store.is_complete("weights/a")


def test_a_cut_file_is_copied_again_and_the_others_are_kept(
    published: Published, folder: Path, tmp_path: Path
) -> None:
    """As after a lost disk write: the marker is there, and a file is shorter than it says."""
    settings = read_node_cache_settings(environment(folder, published, gib=1, ready_file=tmp_path / "ready"))
    for expected in (set(filter(FILES.get, FILES)), {SHARDS[0]}):
        published.model.asked.clear()
        for lock in node_cache.start(settings, {}):
            lock.release()
        assert {path for path, _ in published.model.asked} == expected
        assert copied(folder, published) == FILES
        os.truncate(folder / "weights" / name_of(published) / SHARDS[0], MIB)


def test_a_file_with_another_size_than_announced_gets_no_name(folder: Path) -> None:
    store = NodeStore(folder, 100 * MIB)
    store.begin("weights/a")
    with (
        pytest.raises(NodeStoreError, match=r"model.safetensors: got 3 of 4 bytes"),
        store.new_file("weights/a", HubFile("model.safetensors", 4, "sha256:00")) as stream,
    ):
        stream.write(b"abc")
    assert list(store.folder("weights/a").iterdir()) == []


def test_a_touch_makes_an_entry_the_newest(folder: Path) -> None:
    store = NodeStore(folder, 100 * MIB)
    lock = store.lock("weights/a", exclusive=False)
    used_at(folder, "weights/a", 100)
    before = time.time()
    lock.touch()
    assert (folder / "locks" / "weights--a").stat().st_mtime >= before - 1


def test_missing_settings_are_named_together(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert node_cache.main({"NODE_CACHE_WEIGHTS": "a"}) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    named = capsys.readouterr().err
    for name in ("NODE_CACHE_FOLDER", "NODE_CACHE_GIB", "NODE_CACHE_COMPILED", "WEIGHTS_REPOSITORY"):
        assert name in named


def test_a_worker_that_streams_shares_compiled_kernels_only(folder: Path, tmp_path: Path) -> None:
    settings = read_node_cache_settings(
        {
            "NODE_CACHE_FOLDER": str(folder),
            "NODE_CACHE_GIB": "1",
            "NODE_CACHE_COMPILED": "a@1",
            "NODE_CACHE_READY_FILE": str(tmp_path / "ready"),
        }
    )
    [lock] = node_cache.start(settings, {})
    assert (folder / "compiled" / "a@1").is_dir()
    assert list((folder / "weights").iterdir()) == []
    lock.release()


def test_the_marker_names_what_was_checked(published: Published, folder: Path, tmp_path: Path) -> None:
    settings = read_node_cache_settings(environment(folder, published, gib=1, ready_file=tmp_path / "ready"))
    for lock in node_cache.start(settings, {}):
        lock.release()
    marker = json.loads((folder / "complete" / f"weights--{name_of(published)}.json").read_text())
    assert {file["path"] for file in marker["files"]} == set(FILES)
    assert {file["digest"].partition(":")[0] for file in marker["files"]} == {"sha256", "git-sha1"}
