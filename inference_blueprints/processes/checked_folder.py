"""Folders of the cache that are made once and checked against their checksums each time they are used."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from inference_blueprints.errors import UserError

_SUMS = "SHA256SUMS"

Report = Callable[[str], None]


def made_once(target: Path, title: str, make: Callable[[Path], None], report: Report) -> Path:
    """Return a folder whose content matches its checksums. The first use makes it.

    Parameters
    ----------
    target
        The folder. Its name contains everything that its content depends on.
    title
        What it holds, such as ``etcd 3.6.1``.
    make
        Writes the content into an empty folder.
    report
        Called with a line for the cache hit, or for the start of the work and its duration.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UserError
        If its files were changed, or `make` raises it.
    """
    if target.is_dir():
        check(target)
        report(f"{title}: cached")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    report(f"{title}: building")
    begin = time.monotonic()
    try:
        make(draft)
        (draft / _SUMS).write_text(_sums(draft))
        # Renamed when complete, so that no process sees an incomplete folder.
        draft.rename(target)
    except OSError:
        if not target.is_dir():  # another process may have created the same folder first
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    report(f"{title}: built in {time.monotonic() - begin:.0f} s")
    return target


def check(directory: Path) -> None:
    """Compare the files of a folder with its checksums.

    Parameters
    ----------
    directory
        A folder that `made_once` returned.

    Raises
    ------
    UserError
        If they differ.
    """
    if (directory / _SUMS).read_text() != _sums(directory):
        raise UserError(
            f"{directory}: the files do not match the checksums in {_SUMS}; "
            "remove the folder and run the command again"
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex.

    Parameters
    ----------
    path
        The file.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sums(directory: Path) -> str:
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != _SUMS)
    return "".join(f"{file_digest(path)}  {path.relative_to(directory)}\n" for path in files)
