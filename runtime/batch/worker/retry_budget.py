"""How much is sent again: retries that fail are paid for by requests that succeed.

A token bucket. A success puts in a part of a token, a retry takes a whole one, and gets it back when it
succeeds (as the retry quota of the AWS SDKs does,
https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html). So retries in vain stay a small
share of all requests, while an endpoint of which one replica is broken is still used. No line is lost for
want of a token: it waits. A few tokens come with time, which is how an endpoint that answers nobody is felt
for (https://finagle.github.io/blog/2016/02/08/retry-budgets).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

_MOST_TOKENS: Final = 100.0
_TOKENS_A_SECOND: Final = 10.0
_LEAST_SECONDS: Final = 0.001


class RetryBudget:
    """The tokens and who waits for one.

    Parameters
    ----------
    ratio
        Tokens that a success is worth.
    """

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._tokens = _MOST_TOKENS
        self._filled_at: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def succeeded(self, *, again: bool) -> None:
        """Pay in for a request that succeeded.

        Parameters
        ----------
        again
            Whether it was sent again, and gives its token back.
        """
        self._tokens = min(_MOST_TOKENS, self._tokens + self._ratio + again)
        if self._waiting:
            self._grant()

    async def take(self) -> None:
        """Wait for the token that sending a request again costs; who came first is served first."""
        self._fill()
        if self._tokens >= 1 and not self._waiting:
            self._tokens -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._grant()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._tokens += 1
            raise

    def _fill(self) -> None:
        """Put in what came with time."""
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(_MOST_TOKENS, self._tokens + (now - self._filled_at) * _TOKENS_A_SECOND)
        self._filled_at = now

    def _grant(self) -> None:
        """Serve those who wait, and come again when the next token will have come with time."""
        self._fill()
        while self._waiting and self._tokens >= 1:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._tokens -= 1
                waiter.set_result(None)
        if self._waiting and self._timer is None:
            # Not below what the clock can tell: it would come again and again at the same time.
            seconds = max(_LEAST_SECONDS, (1 - self._tokens) / _TOKENS_A_SECOND)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._grant()
