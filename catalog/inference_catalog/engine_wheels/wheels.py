"""Opens wheels: a file, or a release on the configured package index, of which only parts are read."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

_CHUNK_BYTES = 256 * 1024
_PARTIAL_CONTENT = 206
_REQUIREMENT = re.compile(r"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<release>[A-Za-z0-9][A-Za-z0-9.+!]*)")
#: ``<package>-<release>-…``, as the binary distribution format names wheels; ``+cpu`` and the like say for
#: which device it was built, and are no part of the release.
_FILE_NAME = re.compile(r"(?P<package>[A-Za-z0-9_.]+)-(?P<release>[0-9][^-+]*)(\+[^-]*)?-.+\.whl")
_SECONDS = 120


class RemoteFile(io.RawIOBase):
    """A seekable file over HTTP range requests.

    Parameters
    ----------
    url
        URL of the file. The server must support range requests.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._position = 0
        self._chunks: dict[int, bytes] = {}
        head = urllib.request.Request(url, method="HEAD")  # noqa: S310 -- the index's own https address
        with urllib.request.urlopen(head, timeout=_SECONDS) as response:  # noqa: S310
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
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
                if response.status != _PARTIAL_CONTENT:
                    raise UserError(
                        "the package index answers no range requests; download the wheel and give its file"
                    )
                self._chunks[index] = response.read()
        return self._chunks[index]


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that is open for reading."""

    package: str
    release: str
    """`package`, `release`: What it installs, such as ``vllm`` and ``0.33.0``."""
    digest: str
    """``sha256:…`` of the file, as the index states it, or as computed."""
    archive: zipfile.ZipFile


def open_wheel(given: str) -> Wheel:
    """Open a wheel.

    Parameters
    ----------
    given
        Path of a wheel, or a release such as ``vllm==0.33.0``.

    Raises
    ------
    UserError
        If it is neither, or cannot be read.
    """
    if given.endswith(".whl"):
        return _open_file(Path(given))
    match = _REQUIREMENT.fullmatch(given)
    if match is None:
        raise UserError(f"got {given!r}, must be a wheel's file or a release such as vllm==0.33.0")
    found = _found_wheel(given)
    try:
        archive = zipfile.ZipFile(RemoteFile(found.url))
    except (urllib.error.URLError, OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{given}: its wheel cannot be read from the package index: {error}") from error
    return Wheel(match["package"], match["release"], f"sha256:{found.sha256}", archive)


def open_remote_wheel(requirement: str) -> zipfile.ZipFile:
    """Open the wheel that pip would install for a requirement such as ``vllm==0.31.0``."""
    return open_wheel(requirement).archive


def _open_file(path: Path) -> Wheel:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None:
        raise UserError(
            f"{path}: got the name {path.name!r}, a wheel's is like "
            "vllm-0.33.0-cp38-abi3-manylinux_2_28_x86_64.whl"
        )
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except zipfile.BadZipFile as error:
        raise UserError(f"{path}: is not a wheel: {error}") from error
    return Wheel(match["package"].replace("_", "-"), match["release"], f"sha256:{digest}", archive)


@dataclass(frozen=True, slots=True)
class _Found:
    """A wheel on the index."""

    url: str
    sha256: str


def _found_wheel(requirement: str) -> _Found:
    """Return where the index has the wheel of a requirement.

    pip or uv resolves it, so the index, the proxy and the certificates are those that the user configured.
    """
    for command, read in _resolvers():
        try:
            done = subprocess.run(
                [*command, requirement] if read is _read_pip else command,
                input=requirement,
                capture_output=True,
                text=True,
                check=True,
                timeout=600,
            )
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(f"{requirement}: the package index has no wheel of it: {last}") from error
        return read(done.stdout)
    raise UserError(
        "neither pip nor uv is installed, which ask the configured package index; install one of them, or "
        "download the wheel and give its file"
    )


def _read_pip(text: str) -> _Found:
    """Read pip's installation report (https://pip.pypa.io/en/stable/reference/installation-report/)."""
    found: dict[str, Any] = json.loads(text)["install"][0]["download_info"]
    return _Found(found["url"], found["archive_info"]["hashes"]["sha256"])


def _read_uv(text: str) -> _Found:
    """Read uv's lock, in the format of PEP 751."""
    wheels = tomllib.loads(text)["packages"][0].get("wheels", ())
    if not wheels:
        raise UserError("the package index has only the source of this release, and no wheel")
    # Every wheel of an engine holds the same Python modules; the first is read.
    return _Found(wheels[0]["url"], wheels[0]["hashes"]["sha256"])


def _resolvers() -> list[tuple[list[str], Callable[[str], _Found]]]:
    """Return the programs that can ask the index, with the function that reads their answer."""
    report = ["install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    report += ["--only-binary", ":all:", "--report", "-"]
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else _program("pip")
    # Its answer lists the wheels of every platform.
    lock = ["pip", "compile", "--quiet", "--no-deps", "--format", "pylock.toml"]
    lock += ["--python-platform", "x86_64-manylinux_2_35", "-"]
    uv = _program("uv")
    return [*([([*uv, *lock], _read_uv)] if uv else []), *([([*pip, *report], _read_pip)] if pip else [])]


def _program(name: str) -> list[str]:
    """Return a program beside this Python, or on the path; an empty list if there is none."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    return [found] if found else []
