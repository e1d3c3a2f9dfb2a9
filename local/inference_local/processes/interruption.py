"""Turns signals that stop a run into one exception, so that every `with` block cleans up."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run.

    asyncio raises a KeyboardInterrupt out of its loop. It wraps or logs other exceptions that a signal raises
    in a task or a transport (``asyncio/events.py`` and ``taskgroups.py`` of Python 3.11).
    """

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal.Signals(signal_number).name)

    @property
    def exit_code(self) -> int:
        """The exit code that a shell reports for a program that this signal ended."""
        return 128 + self.signal_number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first signal and ignore later ones, so that the cleanup completes.

    Raises Interrupted in the main thread, when SIGINT, SIGTERM or SIGHUP arrives.
    """

    def stop(signal_number: int, _frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        # asyncio would print tracebacks of the tasks that this ends, when they are collected.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        raise Interrupted(signal_number)

    previous = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
