"""Runs requests alone that may end the workers of a model.

A worker that dies takes all its requests with it, and what killed it kills the next one. So a line is
suspected that was lost twice. It is sent again while no other request of this process is in flight and the
endpoint is known to answer: then only the line itself can be the reason that it is lost once more, and
nothing of batch is lost with it. A line that was only beside another one is answered.

Drains, interrupted Spot instances and lost nodes do not count: their requests are finished, moved to another
worker or time out, and no line meets three of them by chance while it is alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import orjson

from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.metrics import log
from batch.worker.model_endpoint import Answer, ModelEndpoint
from batch.worker.model_request import ModelRequest
from inference_blueprints.contracts.batch_body_fields import IMAGES_PATH

#: Times that a line is lost among others before it is suspected.
LOSSES_AMONG_OTHERS: Final = 2
#: Times that it is lost alone before it is given up.
LOSSES_ALONE: Final = 3
#: Longest wait before a line runs alone again, by which it grows with each loss: suspects of other processes
#: are then unlikely to meet it again.
ALONE_AGAIN_SECONDS: Final = 30.0
#: Idempotency key of the small requests that ask whether the endpoint is there.
PROBE_KEY: Final = "probe"
_PROBE_SECONDS: Final = 60.0
_PROBE_AGAIN_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
_CHAT: Final[Mapping[str, Any]] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
#: A small request by API path, whose answer shows that the model is served.
_PROBES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "/v1/completions": {"prompt": "hi", "max_tokens": 1},
        "/v1/embeddings": {"input": "hi"},
        IMAGES_PATH: {"prompt": "a dot", "size": "256x256", "num_inference_steps": 1},
    }
)


@dataclass(slots=True)
class SuspectLines:
    """The suspects of all shards of the process.

    Parameters
    ----------
    endpoint, limit
        Shared by the process.
    model
        Name under which the endpoint serves the model.
    """

    endpoint: ModelEndpoint
    limit: ConcurrencyLimit
    model: str
    #: When a request was last answered, and last lost, by the event loop's clock.
    answered_at: float = field(default=float("-inf"), init=False)
    lost_at: float = field(default=float("-inf"), init=False)
    _waiting: int = field(default=0, init=False)
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def answered(self) -> None:
        """Note that a request was answered."""
        self.answered_at = asyncio.get_running_loop().time()

    def lost(self) -> None:
        """Note that a request was lost."""
        self.lost_at = asyncio.get_running_loop().time()

    @asynccontextmanager
    async def alone(self, path: str) -> AsyncIterator[None]:
        """Keep all other requests back for the duration of the ``with`` block.

        It begins when no request is in flight and the endpoint answers. Suspects run one after the other, so
        those in flight end once for all of them.

        Parameters
        ----------
        path
            API path of the request.
        """
        self._waiting += 1
        self.limit.hold()
        try:
            async with self._one:
                await self.limit.idle()
                await self.until_answers(path)
                yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.limit.release()

    async def until_answers(self, path: str) -> None:
        """Wait until the endpoint has answered a request since the last one was lost.

        If no line asks it, a small request does.

        Parameters
        ----------
        path
            API path of the small request.
        """
        if self.answered_at >= self.lost_at:
            return
        async with self._probing:
            for seconds in _backoff():
                if self.answered_at >= self.lost_at:
                    return
                outcome = await self.endpoint.ask(path, self._probe(path), seconds=_PROBE_SECONDS)
                if isinstance(outcome, Answer):
                    self.answered()
                    return
                log("endpoint_unready", reason=outcome.reason)
                await asyncio.sleep(seconds)

    def _probe(self, path: str) -> ModelRequest:
        body = {**_PROBES.get(path, _CHAT), "model": self.model}
        return ModelRequest(orjson.dumps(body), PROBE_KEY)


def _backoff() -> Iterator[float]:
    """Yield the waits between probes, for ever."""
    yield from _PROBE_AGAIN_SECONDS
    while True:
        yield _PROBE_AGAIN_SECONDS[-1]
