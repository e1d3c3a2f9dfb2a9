"""The folder that all pods of a node share: locks, what is complete, and the deletion of the oldest entries.

=========================  =================================================================================
Path below the folder      Content
=========================  =================================================================================
``weights/<name>/``        the files of one commit of a model, and nothing else
``compiled/<name>/``       what the workers of one release compiled
``complete/<entry>.json``  written last: the files of a complete entry, with size and digest
``locks/<entry>``          lock of an entry; its content is the reserved size, its time the last use
``parts/<entry>/``         files that are being written
``space.lock``             held while space is reserved
=========================  =================================================================================

Locks are those of ``flock``: the kernel drops them when a process ends, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weights.hub import HubFile

_GIB = 2**30
_KINDS = ("weights", "compiled")


class NodeStoreError(Exception):
    """The node has no room for an entry, or a file has a wrong size or a path that leaves its folder."""


class EntryLock:
    """A lock of an entry, until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def touch(self) -> None:
        """Note that the entry is in use now."""
        os.utime(self._descriptor)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


class NodeStore:
    """The shared folder of a node.

    Parameters
    ----------
    root
        The folder.
    bound_bytes
        Largest size of all entries together, in bytes.
    """

    def __init__(self, root: Path, bound_bytes: int) -> None:
        self._root = root
        self._bound_bytes = bound_bytes
        for name in (*_KINDS, "complete", "locks", "parts"):
            (root / name).mkdir(exist_ok=True)

    def folder(self, entry: str) -> Path:
        """Return the folder of an entry such as ``weights/acme--model@<commit>``."""
        return self._root / entry

    def lock(self, entry: str, *, exclusive: bool) -> EntryLock:
        """Lock an entry: shared to use it, exclusively to write it. Wait for other pods.

        Parameters
        ----------
        exclusive
            Whether nobody else may hold the entry.
        """
        wanted = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        descriptor = self._open(entry)
        try:
            fcntl.flock(descriptor, wanted | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another pod of this node that uses or fills {entry}", flush=True)
            fcntl.flock(descriptor, wanted)
        os.utime(descriptor)
        return EntryLock(descriptor)

    def is_complete(self, entry: str) -> bool:
        """Return whether an entry was completed, and each of its files still has its size."""
        try:
            files = json.loads(self._marker(entry).read_text(encoding="utf-8"))["files"]
            return all((self.folder(entry) / file["path"]).stat().st_size == file["size"] for file in files)
        except FileNotFoundError:
            return False

    def reserve(self, entry: str, size: int) -> None:
        """Reserve room for an entry. Delete the entries that were used longest ago and that no pod holds.

        Parameters
        ----------
        entry
            An entry that the caller has locked exclusively.
        size
            Its size in bytes.

        Raises
        ------
        NodeStoreError
            If the entries that are in use leave too little room.
        """
        with self._space():
            others = [each for each in self._entries() if each != entry]
            sizes = {each: self._size(each) for each in others}
            excess = sum(sizes.values()) + size - self._bound_bytes
            held = []
            for other in sorted(filter(sizes.__getitem__, others), key=self._last_used):
                if excess <= 0:
                    break
                if self._delete(other):
                    print(f"deleted {other}: {_gib(sizes[other])}, not in use", flush=True)
                    excess -= sizes[other]
                else:
                    held.append(f"{other} ({_gib(sizes[other])})")
            if excess > 0:
                users = f"; in use: {', '.join(held)}" if held else ""
                raise NodeStoreError(
                    f"{entry} needs {_gib(size)}, the bound of the node's cache is "
                    f"{_gib(self._bound_bytes)}{users}; raise disk.nodeCacheGib of the pool by "
                    f"{-(-excess // _GIB)}"
                )
            self._write_reserved(entry, size)

    def begin(self, entry: str) -> None:
        """Prepare the folder of an entry that the caller has locked exclusively, and delete partial files."""
        self._marker(entry).unlink(missing_ok=True)
        shutil.rmtree(self._parts(entry), ignore_errors=True)
        self._parts(entry).mkdir()
        self.folder(entry).mkdir(exist_ok=True)

    @contextmanager
    def new_file(self, entry: str, file: HubFile) -> Iterator[Any]:
        """Open a partial file. It gets its name when the block ends without an error.

        Raises
        ------
        NodeStoreError
            If the disk is full, the file is too short or too long, or its path leaves the entry's folder.
        """
        target = self.folder(entry) / file.path
        if not target.resolve().is_relative_to(self.folder(entry).resolve()):
            raise NodeStoreError(f"{file.path!r} is not a path within a repository")
        # By path, since two files with the same content are copied at the same time.
        part = self._parts(entry) / hashlib.sha256(file.path.encode()).hexdigest()
        try:
            with part.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                size = os.fstat(stream.fileno()).st_size
            if size != file.size:
                raise NodeStoreError(f"{file.path}: got {size} of {file.size} bytes")
            target.parent.mkdir(parents=True, exist_ok=True)
            part.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            free = shutil.disk_usage(self._root).free
            raise NodeStoreError(
                f"the node's disk is full: {file.path} needs {_gib(file.size)}, {_gib(free)} are free; lower "
                "disk.nodeCacheGib of the pool, or use an instance type or an EBS volume with more room"
            ) from error
        finally:
            part.unlink(missing_ok=True)

    def complete(self, entry: str, files: Sequence[HubFile]) -> None:
        """Mark an entry as complete."""
        for folder in {(self.folder(entry) / file.path).parent for file in files}:
            _sync(folder)
        marker = self._marker(entry)
        part = self._parts(entry) / "marker"
        with part.open("w", encoding="utf-8") as stream:
            json.dump({"files": [asdict(file) for file in files]}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        part.rename(marker)
        _sync(marker.parent)
        self._parts(entry).rmdir()

    def _open(self, entry: str) -> int:
        return os.open(self._lock_path(entry), os.O_RDWR | os.O_CREAT, 0o644)

    def _lock_path(self, entry: str) -> Path:
        return self._root / "locks" / entry.replace("/", "--", 1)

    def _marker(self, entry: str) -> Path:
        return self._root / "complete" / f"{entry.replace('/', '--', 1)}.json"

    def _parts(self, entry: str) -> Path:
        return self._root / "parts" / entry.replace("/", "--", 1)

    @contextmanager
    def _space(self) -> Iterator[None]:
        """Let only one pod reserve space at a time."""
        descriptor = os.open(self._root / "space.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _entries(self) -> list[str]:
        return [path.name.replace("--", "/", 1) for path in (self._root / "locks").iterdir()]

    def _last_used(self, entry: str) -> float:
        return self._lock_path(entry).stat().st_mtime

    def _size(self, entry: str) -> int:
        """Return the bytes of an entry, or what is reserved for it while it is written."""
        reserved = int(self._lock_path(entry).read_text(encoding="ascii") or 0)
        return max(reserved, _used_bytes(self.folder(entry)))

    def _write_reserved(self, entry: str, size: int) -> None:
        """Write a size without changing the file that carries the lock."""
        with self._lock_path(entry).open("r+", encoding="ascii") as stream:
            stream.truncate()
            stream.write(str(size))

    def _delete(self, entry: str) -> bool:
        """Delete the content of an entry; return False if a pod holds it.

        Its empty folder stays: kubelet would create it again for root, and nobody could fill it.
        """
        descriptor = self._open(entry)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._marker(entry).unlink(missing_ok=True)
            shutil.rmtree(self._parts(entry), ignore_errors=True)
            for path in self.folder(entry).iterdir() if self.folder(entry).is_dir() else ():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            self._write_reserved(entry, 0)
        except BlockingIOError:
            # It is in use now. A task of ECS, which mounts the folder read-only, cannot note that itself.
            os.utime(descriptor)
            return False
        finally:
            os.close(descriptor)
        return True


def _used_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder. A compiler may delete files meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(Path(place) / name).st_size
            except FileNotFoundError:
                continue
    return total


def _sync(folder: Path) -> None:
    """Write a folder's entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
