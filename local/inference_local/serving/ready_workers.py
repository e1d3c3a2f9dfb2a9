"""Workers that are ready, as the forwarders of a local run know them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout

_POLL_SECONDS = 0.5
_POLL_TIMEOUT = ClientTimeout(total=5)

Address = tuple[str, int]


class ReadyWorkers:
    """The workers of one role, chosen in turn among those that are ready.

    addresses: ``HOST:PORT`` of each.
    leaving: Folder with a file for each worker that gets no new requests, named like its host. None if
        workers tell so themselves, by their health.
    """

    def __init__(self, addresses: Iterable[str], leaving: Path | None = None) -> None:
        self._leaving = leaving
        split = (address.rpartition(":") for address in addresses)
        self._all: list[Address] = [(host, int(port)) for host, _, port in split]
        self.ready: set[Address] = set()

    def next(self) -> Address | None:
        """Return the next worker that is ready; None if none is."""
        for index, address in enumerate(self._all):
            if address in self.ready:
                self._all = self._all[index + 1 :] + self._all[: index + 1]
                return address
        return None

    async def poll(self, session: ClientSession) -> None:
        """Ask every worker for its health, until cancelled."""
        await asyncio.gather(*(self._poll(address, session) for address in tuple(self._all)))

    async def _poll(self, address: Address, session: ClientSession) -> None:
        host, port = address
        while True:
            try:
                async with session.get(f"http://{host}:{port}/health", timeout=_POLL_TIMEOUT) as answer:
                    ready = answer.ok
            except (ClientError, OSError):
                ready = False
            if self._leaving is not None and (self._leaving / host).exists():
                ready = False
            (self.ready.add if ready else self.ready.discard)(address)
            await asyncio.sleep(_POLL_SECONDS)


def leaving_folder(home: Path) -> Path:
    """Return the folder with a file for each worker of a deployment that gets no new requests.

    home: Folder of the deployment.
    """
    return home / "leaving"


def listed_workers(roles: Mapping[str, Iterable[Address]]) -> dict[str, object]:
    """Return the ready workers in the format of ``/health`` of Dynamo's frontend."""
    return {
        "instances": [
            {"endpoint": "generate", "component": role, "address": f"{host}:{port}"}
            for role, ready in roles.items()
            for host, port in sorted(ready)
        ]
    }
