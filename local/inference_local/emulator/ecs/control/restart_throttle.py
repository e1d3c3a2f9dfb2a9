"""How long a service waits before it starts a task again whose like has failed to start.

Source: AWS, "Amazon ECS service throttle logic" (service-throttle-logic.html): tasks that go "directly from
PENDING to STOPPED" are started again after a time that grows "up to a maximum of 27 minutes". The document
does not give the steps: the first two retries at once and doubling from 10 s are ours.
"""

from __future__ import annotations

from typing import Final

_MOST_SECONDS: Final = 27 * 60.0
_FIRST_SECONDS: Final = 10.0
_FREE_RETRIES: Final = 2


def wait_seconds(failed_starts: int) -> float:
    """Return the wait in seconds after a number of starts in a row that failed."""
    if failed_starts <= _FREE_RETRIES:
        return 0.0
    return min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failed_starts - _FREE_RETRIES - 1, 20))
