"""Finds out when a worker has died without a reason.

The frontend's page ``/health`` lists the workers that it knows, with the address at which each answers
(ai-dynamo 1.6.1, whatever keeps the list: Kubernetes, etcd or files). A worker that ends as it should leaves
the list first and answers for some time after that: a drain, an interrupted spot instance, a new version. A
node that is lost answers nothing at all. What is counted is an address that refuses connections, because the
node is there and the program is not, while the worker is on the list or has just left it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

_PROBE_SECONDS: Final = 1.0
_PAGE_SECONDS: Final = 5.0
_INTERVAL_SECONDS: Final = 2.0
#: Least time between two looks.
_PAUSE_SECONDS: Final = 0.25
#: Intervals after a failed request: a program may need a moment to end.
_SOON_SECONDS: Final = (0.25, 0.5, 1.0, 1.0)
#: Longest time for which the system still accepts connections for a program that has begun to end: it closes
#: them one after the other, so a request may have failed before.
_CLOSING_SECONDS: Final = 1.0
_MOST_PAGE_BYTES: Final = 16 * 2**20

Address = tuple[str, int]
Found = Literal["accepts", "refuses", "silent"]
#: Called with the address of a worker, the last time at which it surely lived, and the time at which it was
#: seen dead.
Died = Callable[[str, float, float], None]


@dataclass(slots=True)
class _Worker:
    address: Address
    since: float
    alive: float
    left: float | None = None


class WorkerWatch:
    """Watches the workers of one frontend.

    frontend: Host and port of the frontend.
    drain_seconds: Shortest time that a worker answers after it has left the list.
    died: Called for each death.
    """

    def __init__(self, frontend: Address, drain_seconds: float, died: Died) -> None:
        self._frontend, self._drain, self._died = frontend, drain_seconds, died
        self._workers: dict[str, _Worker] = {}
        self._dead: set[str] = set()
        self._read: float | None = None
        self._poked = asyncio.Event()
        self._soon = 0

    def poke(self) -> None:
        """Look soon: a request has failed."""
        self._soon = len(_SOON_SECONDS)
        self._poked.set()

    async def run(self) -> None:
        """Watch until this is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_PAUSE_SECONDS)
            seconds = _INTERVAL_SECONDS
            if self._soon:
                seconds = _SOON_SECONDS[len(_SOON_SECONDS) - self._soon]
                self._soon -= 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), seconds)
            self._poked.clear()

    async def look(self) -> None:
        """Read the list and ask each address once."""
        loop = asyncio.get_running_loop()
        listed = await self._listed()
        if listed is not None:
            self._take_list(listed, loop.time())
        asked = loop.time()
        addresses = {worker.address for worker in self._workers.values()}
        found = dict(zip(addresses, await asyncio.gather(*map(_probe, addresses)), strict=True))
        # A process may have several workers. It dies once.
        dead: dict[Address, float] = {}
        for name, worker in list(self._workers.items()):
            answer = found[worker.address]
            drained = worker.left is not None and asked - worker.left >= self._drain
            if answer == "refuses" or self._is_replaced(worker):
                del self._workers[name]
                self._dead.add(name)
                if not drained:
                    dead[worker.address] = min(worker.alive, dead.get(worker.address, worker.alive))
            elif answer == "accepts":
                worker.alive = asked
                if drained:
                    del self._workers[name]
            elif worker.left is not None:
                # Its node is gone.
                del self._workers[name]
        for (host, port), alive in dead.items():
            self._died(f"{host}:{port}", alive - _CLOSING_SECONDS, loop.time())

    def _take_list(self, listed: Mapping[str, Address], now: float) -> None:
        # A new worker may have taken a request and died of it since the list was last read.
        alive = now if self._read is None else self._read
        self._read = now
        for name, address in listed.items():
            if name not in self._workers and name not in self._dead:
                self._workers[name] = _Worker(address, now, alive)
        for name, worker in self._workers.items():
            if name not in listed:
                worker.left = worker.left or now
        # A worker that died stays on the list for some seconds.
        self._dead &= listed.keys()

    def _is_replaced(self, worker: _Worker) -> bool:
        """Return whether a worker that left the list has a successor at its address: it was started again."""
        return worker.left is not None and any(
            each.left is None and each.address == worker.address and each.since > worker.since
            for each in self._workers.values()
        )

    async def _listed(self) -> dict[str, Address] | None:
        """Return the address of each worker on the list. None if the frontend does not say it."""
        try:
            page = await asyncio.wait_for(_page(*self._frontend, "/health"), _PAGE_SECONDS)
            instances = json.loads(page)["instances"]
            return {
                str(each["instance_id"]): address
                for each in instances
                if each.get("endpoint") == "generate" and (address := _address(each.get("transport")))
            }
        except (OSError, ValueError, KeyError, TypeError, TimeoutError, EOFError):
            return None


def _address(transport: Any) -> Address | None:
    """Return host and port of an instance. None for one that is not asked over TCP."""
    text = transport.get("tcp") if isinstance(transport, dict) else None
    if not isinstance(text, str):
        return None
    host, _, port = text.partition("/")[0].rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdigit() else None


async def _probe(address: Address) -> Found:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(*address), _PROBE_SECONDS)
    except ConnectionRefusedError:
        return "refuses"
    except OSError:
        return "silent"
    writer.transport.abort()
    return "accepts"


async def _page(host: str, port: int, path: str) -> bytes:
    """Return the body of a page of the program."""
    reader, writer = await asyncio.open_connection(host, port, limit=_MOST_PAGE_BYTES)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.read(-1)
        if b"transfer-encoding: chunked" in head.lower():
            raise ValueError("the page comes in chunks")
        return body
    finally:
        writer.transport.abort()
