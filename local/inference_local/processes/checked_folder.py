"""Folders of the cache that are made once and checked against their checksums each time they are used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from inference_blueprints.single_build import Report, built_here
from inference_contracts.errors import UserError

_SUMS = "SHA256SUMS"


def made_once(target: Path, title: str, make: Callable[[Path], None], report: Report) -> Path:
    """Return a folder whose content matches its checksums. The first use makes it, in one process.

    target: The folder. Its name contains everything that its content depends on.
    title: What it holds, such as ``etcd 3.6.1``.
    make: Writes the content into an empty folder.
    report: Called with a line for the cache hit, or with lines of progress, also from another thread.
    Raises UserError if its files were changed, or `make` raises it.
    """

    def make_with_sums(draft: Path) -> None:
        make(draft)
        (draft / _SUMS).write_text(_sums(draft))

    if not built_here(target, title, make_with_sums, report):
        check(target)
        report(f"{title}: cached")
    return target


def check(directory: Path) -> None:
    """Compare the files of a folder with its checksums.

    directory: A folder that `made_once` returned.
    Raises UserError if they differ.
    """
    if (directory / _SUMS).read_text() != _sums(directory):
        raise UserError(
            f"{directory}: the files do not match the checksums in {_SUMS}; "
            "remove the folder and run the command again"
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sums(directory: Path) -> str:
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != _SUMS)
    return "".join(f"{file_digest(path)}  {path.relative_to(directory)}\n" for path in files)
