"""Locks of the host's copies that an engine uses, so that no other task deletes them.

`weights.node_store` describes the folder. The engine's container mounts it read-only, so its locks are opened
for reading; `flock` takes a shared lock of such a file too. A lock belongs to the open file, which the engine
keeps over exec (flock(2)).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from task_start.start_document import TaskStartError


def hold_entries(folder: Path, entries: Iterable[str]) -> None:
    """Lock entries until the process and those that replace it have ended. Wait while a task fills one.

    folder: The folder that all tasks of the host share.
    entries: For example ``weights/acme--model@<commit>``.
    Raises TaskStartError if an entry is missing: the container that fills it did not run, or another task
        deleted the copy since.
    """
    for entry in entries:
        name = entry.replace("/", "--", 1)
        try:
            lock = os.open(folder / "locks" / name, os.O_RDONLY)
        except FileNotFoundError as error:
            raise TaskStartError(f"{folder / entry} was not copied to this host") from error
        fcntl.flock(lock, fcntl.LOCK_SH)
        if entry.startswith("weights/") and not (folder / "complete" / f"{name}.json").is_file():
            raise TaskStartError(f"{folder / entry} is not complete; the next task copies it again")
        os.set_inheritable(lock, True)  # noqa: FBT003 - positional only
