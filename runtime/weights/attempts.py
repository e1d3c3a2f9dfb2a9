"""How often a broken transfer is tried again, and how long that waits."""

from __future__ import annotations

import random
import time

#: Attempts in a row that bring less than `_PROGRESS_BYTES`.
_ATTEMPTS = 10
_PROGRESS_BYTES = 2**20
#: Longest wait (AWS SDKs and Tools Reference Guide, "Retry behavior": exponential backoff up to 20 s).
_LONGEST_SECONDS = 20.0


class Attempts:
    """The attempts to read one body. Whoever gets on may go on; who does not has ten attempts.

    Each wait is random between 0 and a limit that doubles: workers that start together do not ask again
    together (AWS Architecture Blog, "Exponential Backoff And Jitter", full jitter).

    Parameters
    ----------
    first_seconds
        Limit of the first wait.
    """

    def __init__(self, first_seconds: float = 0.5) -> None:
        self._first_seconds = first_seconds
        self._failed = 0
        self._bytes = 0

    def arrived(self, size: int) -> None:
        """Count bytes that arrived."""
        self._bytes += size
        if self._bytes >= _PROGRESS_BYTES:
            self._failed = self._bytes = 0

    def again(self) -> bool:
        """Wait before the next attempt, and return True; return False at once if there is none."""
        self._failed += 1
        if self._failed >= _ATTEMPTS:
            return False
        limit = min(_LONGEST_SECONDS, self._first_seconds * 2 ** (self._failed - 1))
        time.sleep(random.uniform(0, limit))  # noqa: S311 - no secret
        return True
