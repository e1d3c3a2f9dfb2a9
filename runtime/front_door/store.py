"""The connection to Valkey: one per server, on which all that is asked in one turn goes out in one write.

It is an own connection on hiredis, because of the processor time of a reservation (2026-11-29, Python 3.11.7,
uvloop 0.23.0, 2 busy cores, the reserving script with two counters, 6,000 calls, medians of 3):

==================================  ===================  ===================
Client                              one call at a time   16 calls at a time
==================================  ===================  ===================
this module, hiredis 3.5.0          15 us                5 us
valkey 6.2.0 (asyncio) on hiredis   46 us                43 us
valkey-glide 2.6.0                  73 us                44 us
==================================  ===================  ===================

In cluster mode, each command goes to the server that has the slot of its key. After MOVED, or after a
connection is lost, the slots are read again (https://valkey.io/topics/cluster-spec/#moved-redirection).
"""

from __future__ import annotations

import asyncio
import binascii
import collections
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import hiredis
from valkey.exceptions import AuthenticationError

from front_door.trouble import Trouble

Word = bytes | str | int
#: How long a caller waits for the store. After it, the store counts as lost.
ANSWER_SECONDS: Final = 0.5
#: A connection is closed if an answer is due for this long.
_SILENCE_SECONDS: Final = 2.0
_CONNECT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.2
_CHECK_SECONDS: Final = 0.1
_SLOTS: Final = 16384
#: ElastiCache closes a connection 12 hours after its authentication
#: (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html). A fresh token prolongs it.
_TOKEN_SECONDS: Final = 6 * 3600.0


class StoreLostError(Exception):
    """The store does not answer. Whether it has carried out the command is unknown."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where the store is, and how to connect."""

    host: str
    """Host name, or path of a Unix socket."""
    port: int
    cluster: bool = False
    tls: ssl.SSLContext | None = None
    credentials: Callable[[], tuple[str, str]] | None = None
    """Returns the user and a fresh token for each connection. None for a server without users."""


def slot_of(key: str) -> int:
    """Return the slot of a key: CRC16 of what stands in its first pair of braces, or of all of it."""
    start = key.find("{")
    end = key.find("}", start + 1) if start >= 0 else -1
    tag = key[start + 1 : end] if end > start + 1 else key
    return binascii.crc_hqx(tag.encode(), 0) % _SLOTS


class StoreConnection(asyncio.Protocol):
    """A connection with all commands in flight, in their order."""

    def __init__(self) -> None:
        self._waiting: collections.deque[asyncio.Future[Any]] = collections.deque()
        # When each command of `_waiting` was sent; the last ones may not be sent yet.
        self._sent: collections.deque[float] = collections.deque()
        self._out: list[bytes] = []
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def is_open(self) -> bool:
        """Whether commands can be sent."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]  # a transport of a stream

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all commands that have no answer."""
        self._transport = None
        error = StoreLostError(f"the connection to the store is lost: {exc or 'closed'}")
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)
        self._sent.clear()

    def data_received(self, data: bytes) -> None:
        """Give each answer to who waits for it."""
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not _NOTHING:
            future = self._waiting.popleft()
            self._sent.popleft()
            if not future.done():
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)

    def ask(self, *words: Word) -> asyncio.Future[Any]:
        """Send a command, and return the future of its answer.

        The future raises StoreLostError, or ``hiredis.ReplyError`` if the server refuses.
        """
        future = self._loop.create_future()
        if self._transport is None:
            future.set_exception(StoreLostError("there is no connection to the store"))
            return future
        self._waiting.append(future)
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(hiredis.pack_command(words))  # type: ignore[arg-type]  # its type says one word
        return future

    def close(self) -> None:
        """Close it at once."""
        if self._transport:
            self._transport.abort()

    def check(self, now: float) -> None:
        """Fail commands that had no answer in time. Close a connection that has been silent for long.

        now: A moment of `time.monotonic`. What had come until then has been read.
        """
        error = StoreLostError("the store does not answer in time")
        # A command that waits in this process is not one that the store does not answer.
        for future, since in zip(self._waiting, self._sent, strict=False):
            if now - since < ANSWER_SECONDS:
                return
            if not future.done():
                future.set_exception(error)
            if now - since > _SILENCE_SECONDS:
                self.close()
                return

    def _flush(self) -> None:
        if self._transport is not None:
            # The loop's own clock stands still within a turn.
            self._sent.extend([time.monotonic()] * len(self._out))
            self._transport.write(b"".join(self._out))
        self._out.clear()


_NOTHING: Final = object()


class LedgerStore:
    """All connections to the store.

    scripts: Texts of the scripts, which each server is given when it is connected.
    """

    def __init__(self, place: StorePlace, scripts: tuple[str, ...]) -> None:
        self._place, self._scripts = place, scripts
        self._digests: dict[str, bytes] = {}
        self._nodes: dict[tuple[str, int], StoreConnection] = {}
        self._slots: list[tuple[int, int, tuple[str, int]]] = []
        self._stale = False
        self._lock = asyncio.Lock()
        self._lost_since: float | None = time.monotonic()
        self._trouble = Trouble("store lost")
        self.has_answered = False
        """Whether it has been connected once."""
        self._prolonging: set[asyncio.Task[None]] = set()

    def lost_seconds(self) -> float:
        """Return for how long the store has not answered. 0 if it does."""
        return 0.0 if self._lost_since is None else time.monotonic() - self._lost_since

    async def run(self) -> None:
        """Keep the connections open, until it is cancelled."""
        loop = asyncio.get_running_loop()
        next_look = 0.0
        try:
            while True:
                # A process that has stood still reads first what has come meanwhile: the loop runs timers
                # before it reads (https://docs.libuv.org/en/v1.x/design.html#the-i-o-loop).
                now = time.monotonic()
                await asyncio.sleep(0)
                for node in self._nodes.values():
                    node.check(now)
                if self._stale or loop.time() >= next_look:
                    next_look = loop.time() + _RETRY_SECONDS
                    await self._look()
                await asyncio.sleep(_CHECK_SECONDS)
        finally:
            for node in self._nodes.values():
                node.close()

    async def _look(self) -> None:
        try:
            await self._refresh()
            self._lost_since, self.has_answered = None, True
            self._trouble.is_over()
        except (OSError, StoreLostError, TimeoutError, hiredis.HiredisError, AuthenticationError) as error:
            if self._lost_since is None:
                self._lost_since = time.monotonic()
            self._trouble.report(f"{self._place.host}: {error!r}")

    async def ask(self, key: str, *words: Word) -> Any:
        """Send a command to the server that has the slot of a key. Raises StoreLostError."""
        node = self._node_of(key)
        if node is None or not node.is_open:
            raise StoreLostError("there is no connection to the store")
        try:
            return await node.ask(*words)
        except hiredis.ReplyError as error:
            self._stale = True
            raise StoreLostError(f"the store refuses: {error}") from error

    async def script(self, text: str, keys: list[str], words: list[Word]) -> Any:
        """Run a script in the slot of its keys.

        Raises StoreLostError if the store does not answer in time.
        """
        for attempt in (1, 2):
            node = self._node_of(keys[0])
            digest = self._digests.get(text)
            if node is None or digest is None or not node.is_open:
                self._stale = True
                raise StoreLostError("there is no connection to the store")
            try:
                return await node.ask(b"EVALSHA", digest, len(keys), *keys, *words)
            except hiredis.ReplyError as error:
                kind = str(error).partition(" ")[0]
                if attempt == 1 and kind == "NOSCRIPT":
                    await node.ask(b"SCRIPT", b"LOAD", text)
                    continue
                self._stale = True
                if attempt == 1 and kind == "MOVED":
                    await self._look()
                    continue
                raise StoreLostError(f"the store refuses: {error}") from error
        raise AssertionError("unreachable")

    def _node_of(self, key: str) -> StoreConnection | None:
        if not self._place.cluster:
            return self._nodes.get((self._place.host, self._place.port))
        slot = slot_of(key)
        for first, last, address in self._slots:
            if first <= slot <= last:
                return self._nodes.get(address)
        return None

    async def _refresh(self) -> None:
        """Connect what is not connected, and read the slots of a cluster."""
        async with self._lock:
            is_stale, self._stale = self._stale, False
            first = (self._place.host, self._place.port)
            nodes = [self._nodes.get(address) for *_, address in self._slots]
            if not self._place.cluster:
                await self._connected(first)
            elif is_stale or not nodes or not all(node and node.is_open for node in nodes):
                await self._read_slots(first)

    async def _read_slots(self, first: tuple[str, int]) -> None:
        known = [address for address, node in self._nodes.items() if node.is_open]
        node = await self._connected(known[0] if known else first)
        async with asyncio.timeout(_CONNECT_SECONDS):
            rows = await node.ask(b"CLUSTER", b"SLOTS")
        found = [(row[0], row[1], (row[2][0].decode() or first[0], row[2][1])) for row in rows]
        for address in {address for *_, address in found}:
            await self._connected(address)
        self._slots = found

    async def _connected(self, address: tuple[str, int]) -> StoreConnection:
        node = self._nodes.get(address)
        if node and node.is_open:
            return node
        loop = asyncio.get_running_loop()
        place = self._place
        async with asyncio.timeout(_CONNECT_SECONDS):
            if address[0].startswith("/"):
                _, node = await loop.create_unix_connection(StoreConnection, address[0])
            else:
                # A serverless cache names its servers by the host name of its endpoint.
                name = place.host if place.tls else None
                _, node = await loop.create_connection(
                    StoreConnection, *address, ssl=place.tls, server_hostname=name
                )
            try:
                if place.credentials:
                    await node.ask(b"AUTH", *await asyncio.to_thread(place.credentials))
                    loop.call_later(_TOKEN_SECONDS, self._prolong, node)
                for text in self._scripts:
                    self._digests[text] = await node.ask(b"SCRIPT", b"LOAD", text)
            except BaseException:  # such as a server that loads its data
                node.close()
                raise
        self._nodes[address] = node
        return node

    def _prolong(self, node: StoreConnection) -> None:
        """Authenticate an open connection again, before it is closed."""

        async def again() -> None:
            assert self._place.credentials  # noqa: S101 -- for the type checker
            try:
                await node.ask(b"AUTH", *await asyncio.to_thread(self._place.credentials))
            except (StoreLostError, hiredis.HiredisError):
                node.close()

        if node.is_open:
            loop = asyncio.get_running_loop()
            task = loop.create_task(again())
            self._prolonging.add(task)
            task.add_done_callback(self._prolonging.discard)
            loop.call_later(_TOKEN_SECONDS, self._prolong, node)
