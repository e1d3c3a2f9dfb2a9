"""Signals that ask a run to stop become one exception, so that every `with` block cleans up behind it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the run to stop."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal.Signals(signal_number).name)

    @property
    def exit_code(self) -> int:
        """What a shell reports for a program that this signal ended."""
        return 128 + self.signal_number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first signal and ignore later ones, so that nothing breaks the cleaning up.

    Raises
    ------
    Interrupted
        In the main thread, wherever it is, when SIGINT, SIGTERM or SIGHUP arrives.
    """

    def stop(signal_number: int, _frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise Interrupted(signal_number)

    previous = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
