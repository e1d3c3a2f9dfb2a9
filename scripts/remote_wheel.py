"""Reads single files from a wheel on the configured package index without downloading the wheel."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

_CHUNK_BYTES = 256 * 1024


class RemoteFile(io.RawIOBase):
    """A seekable file over HTTP range requests.

    url: URL of the file. The server must support range requests.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._position = 0
        self._chunks: dict[int, bytes] = {}
        head = urllib.request.Request(url, method="HEAD")  # noqa: S310 -- the index's own https address
        with urllib.request.urlopen(head, timeout=60) as response:  # noqa: S310
            self._size = int(response.headers["Content-Length"])

    def seekable(self) -> bool:
        """Return True: `zipfile` starts at the end."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes from the position on."""
        end = self._size if size < 0 else min(self._size, self._position + size)
        parts = []
        while self._position < end:
            index, offset = divmod(self._position, _CHUNK_BYTES)
            part = self._chunk(index)[offset : offset + end - self._position]
            parts.append(part)
            self._position += len(part)
        return b"".join(parts)

    def _chunk(self, index: int) -> bytes:
        if index not in self._chunks:
            first = index * _CHUNK_BYTES
            last = min(self._size, first + _CHUNK_BYTES) - 1
            request = urllib.request.Request(self._url, headers={"Range": f"bytes={first}-{last}"})  # noqa: S310
            with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
                if response.status != 206:  # noqa: PLR2004 -- Partial Content
                    sys.exit(f"the package index ignored a range request for {self._url}")
                self._chunks[index] = response.read()
        return self._chunks[index]


def open_remote_wheel(requirement: str) -> zipfile.ZipFile:
    """Open the wheel that pip would install for a requirement such as ``vllm==0.31.0``.

    pip resolves the URL, so its configured index, proxy and certificates apply.
    """
    return zipfile.ZipFile(RemoteFile(_download(requirement)["url"]))


def wheel_digest(requirement: str) -> str:
    """Return the SHA-256 of that wheel, as the index states it."""
    return str(_download(requirement)["archive_info"]["hashes"]["sha256"])


def _download(requirement: str) -> dict[str, Any]:
    """Return what pip reports about the wheel of a requirement. `.venv` has no pip, so uv runs one."""
    uv = Path(sys.executable).with_name("uv")
    pip = [uv, "tool", "run", "--quiet", "--python", sys.executable, "pip", "install"]
    command = [*pip, "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    command += ["--only-binary", ":all:", "--report", "-", requirement]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(report)["install"][0]["download_info"]
    return found
