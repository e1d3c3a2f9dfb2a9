"""Locks on folders. The kernel releases a lock when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

Waiting = Callable[[], AbstractContextManager[None]]


@contextmanager
def folder_lock(folder: Path, *, shared: bool = False, waiting: Waiting = nullcontext) -> Iterator[None]:
    """Hold the lock of a folder. The holder may remove or rename the folder.

    Parameters
    ----------
    folder
        The folder. It is created if it does not exist.
    shared
        Whether others may hold it at the same time, if they share it too.
    waiting
        Entered while another process holds the lock.
    """
    handle = None
    while handle is None:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _locked(folder, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, waiting)
    try:
        yield
    finally:
        os.close(handle)


@contextmanager
def folder_lock_if_free(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder if it exists and nobody else holds it. Yield whether it is held."""
    try:
        handle = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB, nullcontext)
    except BlockingIOError:
        handle = None
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _locked(folder: Path, kind: int, waiting: Waiting) -> int | None:
    """Lock a folder. Return None if no folder has this name, or another one since the lock was requested."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if kind & fcntl.LOCK_NB:
                raise
            with waiting():
                fcntl.flock(handle, kind)
        try:
            is_same = os.path.samestat(os.fstat(handle), folder.stat())
        except FileNotFoundError:
            is_same = False
        if is_same:
            stack.pop_all()  # the caller closes it
            return handle
    return None
