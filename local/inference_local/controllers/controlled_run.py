"""Runs the controllers beside a local platform, and gathers what they did."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from inference_blueprints.measure.replay.trace_replay import LATE_MS
from inference_blueprints.measure.statistics import percentile
from inference_contracts import health_names
from inference_contracts.units import MILLISECONDS_PER_SECOND
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.answers_server import AnswersServer
from inference_local.controllers.controller_outcomes import (
    CapacityShiftOutcome,
    GpuHealthOutcome,
    LoadSample,
    OperationsRecords,
    calls,
)
from inference_local.controllers.metric_answers import BatchInFlight
from inference_local.controllers.run_clock import RunClock
from inference_local.controllers.worker_nodes import WorkerNode, WorkerNodes
from inference_local.prometheus.local_prometheus import LocalPrometheus
from inference_local.report.report_types import ModelRun
from inference_local.scaling.counted_load import CountedLoad, StreamLengths
from inference_local.scaling.elastic_run import ElasticRun

# Makes a worker slow while clients stream, and follows what GPU health does about it.

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


_SAMPLE_SECONDS = 2.0
_BEFORE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledParts:
    """What a controlled run is made of."""

    elastic: ElasticRun
    """Lets the workers follow the load."""
    nodes: WorkerNodes
    """The workers of the deployment that is watched."""
    frontends: tuple[str, ...]
    """URLs of its frontends."""
    server: AnswersServer
    """What the controllers ask."""
    prometheus: LocalPrometheus
    """The run's Prometheus."""
    records: OperationsRecords
    """The controllers' table."""
    batch_in_flight: BatchInFlight
    """Batch's requests in flight."""
    health_clock: RunClock
    shift_clock: RunClock
    """`health_clock`, `shift_clock`: The clocks of the controllers."""
    start: Callable[[], tuple[Path, Path]]
    """Starts both programs, and returns the files with their calls: that of GPU health first."""
    check: Callable[[], None]
    """Raises an error if a process has died."""


class ControlledRun:
    """The controllers beside a platform. Use it as a context manager around the load.

    parts: What it is made of.
    """

    def __init__(self, parts: ControlledParts) -> None:
        self._parts = parts
        self._stack = ExitStack()
        self._calls: tuple[Path, Path] | None = None

    def __enter__(self) -> Self:
        self._stack.enter_context(self._parts.server)
        self._calls = self._parts.start()
        self._stack.enter_context(self._parts.elastic)
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(exception_type, exception, traceback)

    @property
    def elastic(self) -> ElasticRun:
        """What lets the workers follow the load."""
        return self._parts.elastic

    @property
    def nodes(self) -> WorkerNodes:
        """The workers of the deployment that is watched."""
        return self._parts.nodes

    @property
    def records(self) -> OperationsRecords:
        """What the controllers wrote to their table."""
        return self._parts.records

    def slow_a_worker(self) -> SlowedWorker:
        """Make a worker slow while clients stream, until its replacement serves."""
        parts = self._parts
        return asyncio.run(
            slow_a_worker(
                parts.nodes.role.model, parts.frontends, parts.nodes, parts.records, check=parts.check
            )
        )

    def shift_outcome(
        self, runs: Sequence[ModelRun], batch: BatchOutcome, ramp_seconds: float
    ) -> CapacityShiftOutcome:
        """Return how capacity moved.

        runs: What the clients saw in both ramps.
        batch: Outcome of the batch job beside the second one.
        ramp_seconds: Length of each ramp.
        """
        parts, (_, shift_calls) = self._parts, self._files()
        role = parts.nodes.role
        rows, changes = parts.records.shifts(parts.shift_clock, role.name, str(role.workers.planned.pool))
        first, second = (_ttft_p95(runs, begin, begin + ramp_seconds) for begin in (0.0, ramp_seconds))
        return CapacityShiftOutcome(
            decisions=rows,
            changes=changes,
            failed_runs=len(calls(shift_calls)[1]),
            batch_completed=batch.completed,
            batch_lost=batch.lost + batch.failed,
            batch_seconds=batch.seconds,
            ttft_p95_alone_ms=first,
            ttft_p95_beside_ms=second,
            ttft_p95_ratio=second / first if first and second else None,
            is_timed=all(run.result.lateness_p99_ms <= LATE_MS for run in runs),
            time_factor=parts.shift_clock.factor,
            most_workers=role.workers.planned.maximum,
            workers=tuple((each.seconds, each.ready) for each in parts.elastic.samples),
            load=tuple(self._load()),
        )

    def health_outcome(self, slowed: SlowedWorker) -> GpuHealthOutcome:
        """Return what became of the slow worker.

        slowed: What happened to it.
        """
        parts, (health_calls, _) = self._parts, self._files()
        clock = parts.health_clock
        times = slowed.times(clock)
        done, replacement = slowed.case.get("state") == "done", str(slowed.case.get("replacement", ""))
        answered = self._answered_by(replacement)
        runs, errors = calls(health_calls)
        return GpuHealthOutcome(
            injected=1,
            found=int("confirmed" in times),
            replaced=int(done and answered > 0),
            false_drains=len(slowed.others),
            cut_streams=len(slowed.faults),
            seconds_to_serving=times["done"] - times["slowed"] if done and answered else None,
            speed=SPEED,
            node=parts.nodes.name(slowed.node),
            replacement=replacement,
            replacement_requests=answered,
            times=times,
            runs=runs,
            failed_runs=len(errors),
            streams=slowed.streams,
            time_factor=clock.factor,
            latencies=self._latencies(slowed),
            slow_pod=parts.nodes.pod_name(slowed.node),
        )

    def _files(self) -> tuple[Path, Path]:
        if self._calls is None:
            raise RuntimeError("the run has not begun")
        return self._calls

    def _answered_by(self, node: str) -> int:
        """Return the requests that the workers of a node answered."""
        if not node:
            return 0
        found = self._parts.prometheus.query(
            f'sum(dynamo_component_request_duration_seconds_count{{node="{node}",dynamo_endpoint="generate"}})'
        )
        return round(found[0].value) if found else 0

    def _latencies(self, slowed: SlowedWorker) -> dict[str, tuple[tuple[float, float], ...]]:
        began = self._parts.health_clock.began
        series = self._parts.prometheus.query_range(
            health_names.WORKER_LATENCY,
            start=slowed.slowed_at - _BEFORE_SECONDS,
            end=slowed.ended_at,
            step_seconds=_SAMPLE_SECONDS,
        )
        return {
            labels["pod"]: tuple(
                (at - began, value * MILLISECONDS_PER_SECOND) for at, value in points if math.isfinite(value)
            )
            for labels, points in series
        }

    def _load(self) -> Iterator[LoadSample]:
        parts = self._parts
        began, now = parts.shift_clock.began, time.time()
        series = parts.prometheus.query_range(
            "sum(serving_requests_in_flight)", start=began, end=now, step_seconds=_SAMPLE_SECONDS
        )
        minutes = {round(at): value for at, value in parts.batch_in_flight.points()}
        for at, value in series[0][1] if series else ():
            shown = parts.shift_clock.of(at)
            near = [minutes[each] for each in _minutes_before(shown) if each in minutes]
            batch = min(value, sum(near) / len(near)) if near else 0.0
            yield LoadSample(at - began, value - batch, batch)


def _minutes_before(shown: float) -> list[int]:
    minute = int(shown) // 60
    return [60 * (minute - back) for back in range(4)]


def _ttft_p95(runs: Sequence[ModelRun], begin: float, end: float) -> float | None:
    """Return the 95th percentile of the time to first token of the answered requests of a time."""
    found = [
        each.time_to_first_token_ms
        for run in runs
        for each in run.result.answered
        if begin <= each.due_seconds < end
    ]
    return percentile([each for each in found if each is not None], 95)
