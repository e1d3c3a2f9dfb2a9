"""Connections, keys and configurations that come and go at a front door, and the memory of its processes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import psutil

from benchmarks.front_door import Started
from benchmarks.harness.measured_door import LoneRequest, MeasuredWay, ask_once
from inference_contracts.door_keys import KeyRecord, key_hash, new_key
from tests.runtime.front_door.conftest import FUTURE
from tests.runtime.front_door.keys.key_tables import record

#: Requests and streams of each turn, each on a connection of its own. Half of the streams are cut.
_REQUESTS: Final = 12
_STREAMS: Final = 4
_TURN_SECONDS: Final = 1.0
#: Keys that callers use at a time, and turns within which replicas learn of a new one.
_KEYS: Final = 8
_KNOWN_TURNS: Final = 6
#: Turns between two configurations.
_CONFIGURATION_TURNS: Final = 5
_TELL_SECONDS: Final = 60.0
_NAMES: Final = ("envoy", "policy", "store")
#: Changes that are told with a failed request: those while it was open, and this time before.
_BEFORE_SECONDS: Final = 2.0
#: Time after which Envoy has written the line of a request.
_LOG_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.05


class Churn:
    """The churn at one way."""

    def __init__(self, ways: Started, way: MeasuredWay) -> None:
        self._ways, self._way = ways, way
        self._keys: list[tuple[KeyRecord, str]] = []
        self.samples: list[tuple[float, dict[str, float]]] = []
        """Seconds since the start, and the resident memory of each process in MiB."""
        self.asked = self.made = self.configured = 0
        self.failed: list[LoneRequest] = []
        self._changes: list[tuple[float, str]] = []
        self._lags: list[tuple[float, float]] = []

    async def run(self, seconds: float, tell: Callable[[str], object] = lambda _: None) -> None:
        """Go on for a time.

        tell: Takes a line every minute, and one about each failed request.
        """
        watch = asyncio.create_task(self._watch())
        try:
            await self._run(seconds, tell)
        finally:
            watch.cancel()

    async def _run(self, seconds: float, tell: Callable[[str], object]) -> None:
        start, turn, told = time.monotonic(), 0, 0.0
        for _ in range(_KEYS):
            await asyncio.to_thread(self._new_key)
        await asyncio.sleep(_KNOWN_TURNS * _TURN_SECONDS)
        while (now := time.monotonic() - start) < seconds:
            turn += 1
            await asyncio.to_thread(self._change, turn)
            for failure in await self._ask(turn):
                await asyncio.sleep(_LOG_SECONDS)
                tell(json.dumps(self._described(failure, failure.started - start)))
            self.samples.append((now, self._memory()))
            if now - told >= _TELL_SECONDS:
                told = now
                tell(f"{now:.0f} s: {self._memory()}, {self.asked} asked, {len(self.failed)} failed")
            await asyncio.sleep(max(0.0, start + now + _TURN_SECONDS - time.monotonic()))

    def growth(self) -> dict[str, float]:
        """Return the growth of each process from the second quarter of the time to the last one, in MiB."""
        quarter = len(self.samples) // 4
        before, after = self.samples[quarter : 2 * quarter], self.samples[-quarter:]

        def mean(name: str, found: list[tuple[float, dict[str, float]]]) -> float:
            return sum(each[name] for _, each in found) / len(found)

        return {name: mean(name, after) - mean(name, before) for name in _NAMES}

    def _memory(self) -> dict[str, float]:
        return {
            name: psutil.Process(each).memory_info().rss / 2**20
            for name, each in zip(_NAMES, self._way.processes, strict=True)
        }

    def _new_key(self) -> None:
        made = new_key()
        facts: Mapping[str, Any] = {"id": made.id, "hashes": (key_hash(made.secret),), "expires": FUTURE}
        written = self._ways.platform.keys.put(record("red", **facts), before=None)
        self._keys.append((written, made.secret))
        self._changed("key made")
        self.made += 1

    def _change(self, turn: int) -> None:
        """Make a key, revoke one that nobody uses any more, and change the configuration."""
        if turn % 2 == 0:
            self._new_key()
        if len(self._keys) > _KEYS + 2 * _KNOWN_TURNS:
            old, _ = self._keys.pop(0)
            self._ways.platform.keys.put(replace(old, revoked=int(time.time())), before=old)
            self._changed("key revoked")
        if turn % _CONFIGURATION_TURNS == 0:
            self.configured += 1
            self._ways.configure(self._way.name, self.configured)
            self._changed(f"configuration {self.configured}")

    def _changed(self, what: str) -> None:
        self._changes = [*self._changes[-100:], (time.monotonic(), what)]

    async def _ask(self, turn: int) -> list[LoneRequest]:
        """Ask, and return the requests that failed."""
        usable = [secret for _, secret in self._keys][:_KEYS]
        asked = []
        for number in range(_REQUESTS + _STREAMS):
            secret = usable[(turn + number) % len(usable)]
            way = replace(self._way, headers=(("authorization", f"Bearer {secret}"),))
            is_stream = number >= _REQUESTS
            asked.append(ask_once(way, stream=is_stream, cut=is_stream and number % 2 == 0))
        answered = await asyncio.gather(*asked)
        failed = [each for each in answered if not each.is_good]
        self.asked += len(answered)
        self.failed += failed
        return failed

    def _described(self, failure: LoneRequest, at: float) -> dict[str, Any]:
        """Return what is known of a failed request, and of what happened meanwhile."""
        first, last = failure.started - _BEFORE_SECONDS, failure.started + failure.seconds
        return {
            "second": round(at, 1),
            **asdict(failure),
            "changes": {
                f"{when - failure.started:+.2f}": what for when, what in self._changes if first < when < last
            },
            "slowest_tick_of_client": max((lag for when, lag in self._lags if first < when), default=0.0),
            "load": os.getloadavg(),
            "memory": self._memory(),
            "log": self._ways.log_lines(self._way.name, failure.request_id),
            "counters": self._ways.counters(self._way.name),
        }

    async def _watch(self) -> None:
        """Note how late this process is: a client that does not run is no fault of the door."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            self._lags = [*self._lags[-2400:], (now, now - before - _TICK_SECONDS)]
