"""Fills and holds a node's copy of a model: `python3 -m weights.node_cache`, a sidecar of each worker.

The first pod of a node fills the copy from the bucket or the Hub; pods that start meanwhile wait. A pod holds
a shared lock as long as it lives, so that no other pod deletes what it uses. Run it again after an
interruption: it copies only the files that are missing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

from weights.hub import BrokenHubError, CheckedStream, CorruptFileError, Hub, HubError, HubFile
from weights.node_store import EntryLock, NodeStore, NodeStoreError
from weights.s3_reader import ObjectStream, S3Error, S3Reader
from weights.settings import Copy, NodeCacheSettings, WeightsSettingsError, read_node_cache_settings

# Memory: files, parts of each that are requested ahead, and their size: 256 MiB.
_FILES_AT_ONCE, _PARTS_AHEAD, _PART_BYTES = 8, 4, 8 * 2**20
_PIECE_BYTES = 4 * 2**20
_MIRROR_PERIOD_SECONDS = 10.0
_TOUCH_PERIOD_SECONDS = 60.0


#: Why a copy fails. Its next attempt keeps the files that are complete.
COPY_ERRORS = (
    WeightsSettingsError,
    HubError,
    BrokenHubError,
    CorruptFileError,
    NodeStoreError,
    S3Error,
)


class WeightsSource(Protocol):
    """Where the files of a model come from."""

    def files(self) -> list[HubFile]:
        """Return its files with their digests."""

    def open(self, file: HubFile) -> CheckedStream:
        """Return a stream that raises an error at its end if the digest is wrong."""


class MirroredModel:
    """The copy in the platform's bucket, with the digests in its manifest.

    Parameters
    ----------
    executor
        Runs the requests of all files.
    """

    def __init__(self, copy: Copy, reader: S3Reader, executor: ThreadPoolExecutor) -> None:
        self._copy, self._reader, self._executor = copy, reader, executor

    def files(self) -> list[HubFile]:
        """Wait for the manifest, which is written last, and return its files."""
        key = self._copy.manifest_key
        while not self._reader.exists(key):
            print(f"waiting for s3://{self._copy.bucket}/{key}: the model is still being copied", flush=True)
            time.sleep(_MIRROR_PERIOD_SECONDS)
        return [HubFile(**file) for file in json.loads(self._reader.read(key))["files"]]

    def open(self, file: HubFile) -> CheckedStream:
        """Return a stream of an object, checked against the digest that the Hub published."""
        read = self._reader.object(self._copy.key(file.path)).read

        def connect() -> Any:
            return ObjectStream(
                read, file.size, part_bytes=_PART_BYTES, parts=_PARTS_AHEAD, executor=self._executor
            )

        return CheckedStream(file, connect=connect, explained=nullcontext)


class _StoppedError(Exception):
    """The copy of a file ended because that of another file failed."""


def hold(store: NodeStore, entry: str, source: WeightsSource) -> EntryLock:
    """Fill an entry unless it is complete, and return a shared lock of the complete entry.

    Parameters
    ----------
    entry
        Folder of the weights in the store.

    Raises
    ------
    NodeStoreError
        If the node has no room.
    CorruptFileError
        If a file has another digest or size.
    """
    while True:
        lock = store.lock(entry, exclusive=False)
        if store.is_complete(entry):
            return lock
        lock.release()
        filling = store.lock(entry, exclusive=True)
        try:
            # Another pod may have filled it while this one waited.
            if not store.is_complete(entry):
                _fill(store, entry, source)
        finally:
            filling.release()


def _fill(store: NodeStore, entry: str, source: WeightsSource) -> None:
    """Copy the missing files of an entry, several of them in parallel."""
    begin = time.monotonic()
    files = source.files()
    store.reserve(entry, sum(file.size for file in files))
    store.begin(entry)
    missing = [file for file in files if not _has(store.folder(entry), file)]
    print(f"{entry}: {len(files)} files, to copy {_mib(missing)} MiB", flush=True)
    failed = threading.Event()
    with ThreadPoolExecutor(_FILES_AT_ONCE) as executor:
        results = [executor.submit(_copy_file, store, entry, file, source, failed) for file in missing]
    errors = [error for result in results if (error := result.exception())]
    for error in sorted(errors, key=lambda each: isinstance(each, _StoppedError)):
        raise error
    store.complete(entry, files)
    seconds = max(time.monotonic() - begin, 1e-3)
    print(f"{entry}: complete, {_mib(missing) / seconds:.0f} MiB/s over {seconds:.0f} s", flush=True)


def _has(folder: Path, file: HubFile) -> bool:
    """Whether a file was copied before. It got its name after its digest was checked."""
    path = folder / file.path
    return path.is_file() and path.stat().st_size == file.size


def _copy_file(
    store: NodeStore, entry: str, file: HubFile, source: WeightsSource, failed: threading.Event
) -> None:
    """Copy one file; stop as soon as another one failed."""
    try:
        with store.new_file(entry, file) as target:
            stream = source.open(file)
            # The last piece, or the only one of an empty file, raises an error if the digest is wrong.
            while piece := stream.read(_PIECE_BYTES):
                target.write(piece)
                _check(failed)
    except BaseException:
        failed.set()
        raise


def _check(failed: threading.Event) -> None:
    if failed.is_set():
        raise _StoppedError


def _mib(files: Sequence[HubFile]) -> int:
    return sum(file.size for file in files) // 2**20


def start(settings: NodeCacheSettings, environment: Mapping[str, str]) -> list[EntryLock]:
    """Fill what the worker uses, create the ready file, and return the locks to hold until the pod ends."""
    store = NodeStore(settings.folder, settings.bound_bytes)
    locks = []
    with ThreadPoolExecutor(_FILES_AT_ONCE * _PARTS_AHEAD) as executor:
        if settings.weights:
            source: WeightsSource = Hub(settings.repository, settings.revision)
            if settings.copy:
                source = MirroredModel(settings.copy, S3Reader(settings.copy.bucket, environment), executor)
            locks.append(hold(store, f"weights/{settings.weights}", source))
    compiled = f"compiled/{settings.compiled}"
    locks.append(store.lock(compiled, exclusive=False))
    store.folder(compiled).mkdir(exist_ok=True)
    settings.ready_file.touch()
    print("ready: the worker can start", flush=True)
    return locks


def main(environment: Mapping[str, str]) -> int:
    """Run until SIGTERM and return the exit code. kubelet starts the program again after an error."""
    # Until the worker starts, the program ends at once: an interrupted copy is continued later.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        locks = start(read_node_cache_settings(environment), environment)
    except COPY_ERRORS as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.wait(_TOUCH_PERIOD_SECONDS):
        for lock in locks:
            lock.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
