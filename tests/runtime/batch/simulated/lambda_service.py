"""Lambda's concurrency: an account has so many calls at a time, and some of them are reserved.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.runtime.batch.simulated.state_machine import TaskError

THROTTLED = "Lambda.TooManyRequestsException"


class Concurrency:
    """Calls that run at this moment.

    account: Calls of all functions at the same time.
    reserved: Calls at the same time of a function that has its own, by name.
    """

    def __init__(self, account: int, reserved: Mapping[str, int]) -> None:
        self._reserved = reserved
        self._unreserved = account - sum(reserved.values())
        self._running: Counter[str] = Counter()
        self.most_unreserved = 0
        self.throttled: Counter[str] = Counter()

    def enter(self, function: str) -> None:
        """Begin a call. Raises TaskError if there is no room."""
        if function in self._reserved:
            is_full = self._running[function] >= self._reserved[function]
        else:
            is_full = self._busy() >= self._unreserved
        if is_full:
            self.throttled[function] += 1
            raise TaskError(THROTTLED)
        self._running[function] += 1
        self.most_unreserved = max(self.most_unreserved, self._busy())

    def leave(self, function: str) -> None:
        self._running[function] -= 1

    def _busy(self) -> int:
        return sum(count for name, count in self._running.items() if name not in self._reserved)
