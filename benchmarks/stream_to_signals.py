"""The streaming job on this machine: calls per second against Little's bound, time to the signal, recovery.

Kafka, Flink, the job's jar and Valkey are real. The model's endpoint is a program that answers each call
after 300 ms without work of its own, so every figure is simulated. All share the processors of this machine.

There are ten rounds. In each, the job first works off 12,000 sessions that wait in Kafka, with at most 300
calls in flight; then it gets a stream of a minute with a kill in its middle. Each round begins with an empty
Kafka, store and job.

- `_bound` is the time per call as a multiple of Little's bound, 300 ms / 300 calls. The goal, 1 / 0.85, is
  85 % of the rate of the bound.
- `_event_to_signal` is the 99th percentile of the time from a session's newest event until readers see its
  signal, at 20 events per second and with half a second of debounce, without what the outage delays.
- `_recovery` is the time from a SIGKILL of the job's process until the next signal is visible.

`_lower` and `_upper` are the ends of the 95 % interval of the mean (Student's t). Goals apply to the upper
end. Where the interval contains the goal, the name ends with `_inconclusive`. It takes half an hour.
"""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.harness.figure import ROUNDS, BenchmarkError, Figure, interval_figures
from benchmarks.harness.stub_endpoint import LATENCY_SECONDS, stub_endpoint
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.units import MILLISECONDS_PER_SECOND
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup
from inference_local.run_state import RunningModel
from inference_local.run_steps import CLICKS, Steps
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.streaming.click_stream import Click
from inference_local.streaming.job_processes import (
    MODULES,
    JobProcess,
    KafkaProcess,
    local_signal_store,
)
from inference_local.streaming.streaming_run import run_streaming

_IN_FLIGHT, _SUBTASKS, _CALLS = 300, 2, 12_000
_GOAL_SHARE, _GOAL_SIGNAL_SECONDS, _GOAL_RECOVERY_SECONDS = 0.85, 3.0, 30.0
_STREAM_SECONDS, _CONTEXT, _PATIENCE_SECONDS = 60.0, 8192, 120.0
#: What its processes run.
PROGRAMS = ("runtime/java",)


def measure() -> list[Figure]:
    """Take the measurements."""
    if reason := java_programs.missing_tools():
        raise BenchmarkError(reason)
    blueprint = load_blueprint("streaming-g6e").blueprint
    with tempfile.TemporaryDirectory() as directory, stub_endpoint() as url:
        folder = Path(directory)
        java_programs.build(MODULES, folder / "maven.log")
        calls, streams = [], []
        for number in range(ROUNDS):
            calls.append(_calls(blueprint, url, folder / f"calls-{number}"))
            streams.append(_stream(blueprint, url, folder / f"stream-{number}"))
    return list(_figures(calls, streams))


def _figures(ratios: Sequence[float], streams: Sequence[tuple[float, float]]) -> Iterator[Figure]:
    """Yield the figures of all rounds: those of calls, and those of streams."""
    signals, recoveries = zip(*streams, strict=True)
    name = "stream_to_signals"
    yield from interval_figures(f"{name}_bound", ratios, "of Little's bound", goal=1 / _GOAL_SHARE)
    yield from interval_figures(f"{name}_event_to_signal", signals, "s", goal=_GOAL_SIGNAL_SECONDS)
    yield from interval_figures(f"{name}_recovery", recoveries, "s", goal=_GOAL_RECOVERY_SECONDS)


def _calls(blueprint: Blueprint, url: str, directory: Path) -> float:
    """Let the job work off a full topic, and return the time per call as a multiple of Little's bound."""
    [job, *_] = blueprint.spec.streaming
    directory.mkdir()
    with ProcessGroup() as processes, ValkeyServer(directory / "valkey") as valkey:
        kafka = KafkaProcess(directory, processes)
        kafka.start_for(job, partitions=4 * _SUBTASKS)
        with kafka.producer(job, _one_event_each(job), 0.0):
            pass  # it sends all at once, and waits until Kafka has them
        planned = job_configuration(
            job,
            platform=blueprint.metadata.name,
            bootstrap_servers=kafka.address,
            kafka_authentication="none",
            endpoint_url=url,
            store=local_signal_store(valkey.port),
            history_uri=(directory / "history").resolve().as_uri(),
        )
        endpoint = replace(
            planned.endpoint, max_in_flight=_IN_FLIGHT, max_in_flight_per_subtask=_IN_FLIGHT // _SUBTASKS
        )
        process = JobProcess(directory, processes, replace(planned, endpoint=endpoint), _SUBTASKS)
        before = len(_times(url, 0))
        process.start()
        times = _times(url, before + _CALLS)[before:]
    # The first calls compile the job, and the last ones are fewer than may be in flight.
    first, last = len(times) // 4, len(times) * 3 // 4
    each = (times[last] - times[first]) / (last - first)
    return each / (LATENCY_SECONDS / _IN_FLIGHT)


def _stream(blueprint: Blueprint, url: str, directory: Path) -> tuple[float, float]:
    """Replay a stream with a kill in its middle.

    Return the 99th percentile of the time from event to signal, and the time of recovery, in seconds.
    """
    models = [RunningModel(model.name, f"{url}/v1", _CONTEXT) for model in blueprint.spec.models]
    steps = Steps(Console(stderr=True), [CLICKS])
    engines = SimulatedKind(blueprint)
    outcome, _ = run_streaming(
        blueprint, models, directory, engines=engines, steps=steps, seconds=_STREAM_SECONDS, door=None
    )
    p99, recovery = outcome.event_to_signal_ms.p99, outcome.recovery_seconds
    if outcome.is_bad:
        raise BenchmarkError(f"{outcome.lost} lost, {outcome.duplicated} duplicated")
    if p99 is None or recovery is None:
        raise BenchmarkError("this machine was too busy: no signal was visible outside of the outage")
    return p99 / MILLISECONDS_PER_SECOND, recovery


def _one_event_each(job: StreamingJob) -> list[Click]:
    """Return an event for each of many sessions."""
    now = round(time.time() * MILLISECONDS_PER_SECOND)
    example = job.events.examples[0]
    clicks = []
    for number in range(_CALLS):
        fields = {**example, job.session.key: f"session-{number}", job.session.time: now}
        fields |= {job.session.id: f"event-{number}"} if job.session.id else {}
        clicks.append(Click(0.0, f"session-{number}", "event", json.dumps(fields).encode(), now))
    return clicks


def _times(url: str, count: int) -> list[float]:
    """Return when calls arrived at the endpoint, once so many have."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with urllib.request.urlopen(f"{url}/times") as answer:  # noqa: S310 - the program below
            times: list[float] = json.load(answer)
        if len(times) >= count:
            return times
        if time.monotonic() > deadline:
            raise BenchmarkError(f"only {len(times)} of {count} calls after {_PATIENCE_SECONDS:.0f} s")
        time.sleep(1.0)
