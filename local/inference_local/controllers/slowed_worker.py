"""Makes a worker slow while clients stream, and follows what GPU health does about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inference_local.controllers.operations_records import OperationsRecords
from inference_local.controllers.run_clock import RunClock
from inference_local.controllers.worker_nodes import WorkerNode, WorkerNodes
from inference_local.scaling.counted_load import CountedLoad, StreamLengths

#: Speed of the slow worker, as a share of that of the others.
SPEED = 0.5
#: Streams at the same time.
CLIENTS = 56
_LENGTHS = StreamLengths(prompts=(400, 900), answers=(70, 110))
_STREAM_SECONDS = 60.0
_BEGIN_SECONDS, _AFTER_SECONDS, _LONGEST_SECONDS = 6.0, 8.0, 170.0
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SlowedWorker:
    """What happened."""

    node: WorkerNode
    """The node of the slow worker."""
    slowed_at: float
    ended_at: float
    """`slowed_at`, `ended_at`: When its process was told to become slow, and when the clients ended, in
    seconds since the epoch."""
    case: Mapping[str, Any]
    """The last case about its node. Empty if there is none."""
    others: tuple[str, ...]
    """Names of other nodes that were cordoned."""
    streams: int
    """Streams that ended."""
    faults: tuple[str, ...]
    """What was wrong with streams."""

    def times(self, clock: RunClock) -> dict[str, float]:
        """Return the seconds of the run at which things happened."""
        states: Mapping[str, float] = self.case.get("times", {})
        found = {state: clock.run_seconds(float(at)) for state, at in states.items()}
        return {"slowed": self.slowed_at - clock.began, **found}


async def slow_a_worker(
    model: str,
    frontends: tuple[str, ...],
    nodes: WorkerNodes,
    records: OperationsRecords,
    *,
    check: Callable[[], None],
) -> SlowedWorker:
    """Stream, make a worker slow, and stream on until its replacement serves or it takes too long.

    frontends: URLs of its frontends, without ``/v1``.
    records: The controllers' table.
    check: Called while it waits. It raises an error if a process has died.
    """
    load = CountedLoad(model, frontends, CLIENTS, _LENGTHS, timeout_seconds=_STREAM_SECONDS, seed=1)
    async with load:
        await asyncio.sleep(_BEGIN_SECONDS)
        slowed_at = time.time()
        node = await asyncio.to_thread(nodes.slow_down, SPEED)
        name = nodes.name(node)
        deadline, case = time.monotonic() + _LONGEST_SECONDS, dict[str, Any]()
        while time.monotonic() < deadline and case.get("state") not in ("done", "refused", "gave_up"):
            await asyncio.sleep(_PAUSE_SECONDS)
            check()
            cases = await asyncio.to_thread(records.cases)
            case = next((each for each in cases if each["node"] == name), {})
        await asyncio.sleep(_AFTER_SECONDS)
        load.stop()
    cases = await asyncio.to_thread(records.cases)
    others = [each["node"] for each in cases if each["node"] != name and "cordoned" in each["times"]]
    case = next((each for each in cases if each["node"] == name), {})
    count = load.count
    return SlowedWorker(node, slowed_at, time.time(), case, tuple(others), count.streams, tuple(count.faults))
