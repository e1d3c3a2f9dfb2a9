"""A clock that stands until it is put forward: nobody waits for requests that are slow or due later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from inference_blueprints.measure.replay import trace_replay
from inference_blueprints.measure.replay.open_loop import Pacing


class StandingClock:
    """Its time does not depend on how fast this machine is."""

    def __init__(self) -> None:
        self._now = time.monotonic()

    def __call__(self) -> float:
        return self._now

    def pass_by(self, seconds: float) -> None:
        self._now += seconds

    async def sleep(self, seconds: float) -> None:
        """Let time pass, and others go on."""
        self.pass_by(seconds)
        await asyncio.sleep(0)


@contextmanager
def standing_clock() -> Iterator[StandingClock]:
    """Let event loops, requests and replays read such a clock."""
    clock = StandingClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", clock)
        patch.setattr(time, "perf_counter", clock)
        patch.setattr(trace_replay, "Pacing", lambda: Pacing(clock, clock.sleep))
        yield clock
