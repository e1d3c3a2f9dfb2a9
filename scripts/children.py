"""Programs that start others end them too, also when they are told to end."""

from __future__ import annotations

import signal
import sys

import psutil


def end_with_children() -> None:
    """From now on, SIGTERM and SIGINT end all processes that this one has started, and then this one."""

    def end(number: int, _: object) -> None:
        for process in psutil.Process().children(recursive=True):
            try:
                process.terminate()
            except psutil.NoSuchProcess:  # it has just ended
                continue
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
