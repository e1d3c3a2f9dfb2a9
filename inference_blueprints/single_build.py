"""Folders that are built once, although several processes need them at the same time."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from inference_blueprints.folder_lock import folder_lock

#: Time between two lines on a build that has not ended. Continuous integration stops a job that is silent for
#: minutes, and so does a person.
_SECONDS_BETWEEN_LINES = 30.0

Report = Callable[[str], None]


def built_here(target: Path, title: str, make: Callable[[Path], None], report: Report) -> bool:
    """Build a folder that does not exist yet. One process builds, others wait for it.

    If the process that builds is killed, one of those that wait builds the folder from the start.

    Parameters
    ----------
    target
        The folder. It appears when it is complete.
    title
        What it holds, such as ``etcd 3.6.1``.
    make
        Writes the content into an empty folder.
    report
        Called with lines of progress, also from another thread: the start of a build or of waiting, its time
        so far now and then, and the duration of a build.

    Returns
    -------
    bool
        Whether this process built it. False if it existed, or another process built it.
    """
    if target.is_dir():
        return False
    begin = time.monotonic()
    drafts = target.with_name(f".{target.name}.draft")
    with folder_lock(
        drafts, waiting=lambda: _repeated(f"{title}: waiting for another process that builds it", report)
    ):
        try:
            if target.is_dir():
                return False
            with _repeated(f"{title}: building", report):
                # A new name: a compiler whose parent was killed may still write into an earlier draft.
                draft = Path(tempfile.mkdtemp(dir=drafts))
                make(draft)
            draft.rename(target)
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
    report(f"{title}: built in {time.monotonic() - begin:.0f} s")
    return True


@contextmanager
def _repeated(line: str, report: Report) -> Iterator[None]:
    """Report a line, and from time to time the line with the time since then."""
    begin = time.monotonic()
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(_SECONDS_BETWEEN_LINES):
            report(f"{line}, {time.monotonic() - begin:.0f} s so far")

    report(line)
    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
