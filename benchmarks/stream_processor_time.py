"""Processor time of the whole streaming job per event and call, as Managed Service for Apache Flink runs it.

Kafka, Flink, the job's jar and Valkey are real. The model's endpoint answers each call after 300 ms without
work of its own, so the figures are simulated. As in the service, state is in RocksDB, and an incremental
checkpoint is made each minute
(https://docs.aws.amazon.com/managed-flink/latest/java/reference-flink-settings.title.html). The compiler is
the JVM's default (C2) and the collector that of Flink's own start of workers (`-XX:+UseG1GC`,
`bin/taskmanager.sh`): the service documents no other.

Sessions of 12 events grow as in the blueprint streaming-g6e, 2,000 of them at a time, and 600 calls start per
second. The first 50,000 calls do not count: until then, the JVM compiles, and a call costs two to five times
as much. Then the processor time of the job's process is divided by the next 30,000 calls.

- `_one_event_us` is for calls with one event each, and `_four_events_us` for calls with four. The
  microseconds per event and per call in `catalog/inference_catalog/data/streaming.json` follow from both;
  `blueprints plan` sizes jobs by them.
- `_quick_start_us` is as the first, with the compiler of local runs (`-XX:TieredStopAtLevel=1`).

Each figure is the median of three rounds. All parts share the processors of this machine. It takes half an
hour.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from benchmarks.harness.figure import BenchmarkError, Figure
from benchmarks.harness.stub_endpoint import stub_endpoint
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.units import MICROSECONDS_PER_SECOND, MILLISECONDS_PER_SECOND
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup
from inference_local.streaming.click_stream import Click
from inference_local.streaming.job_processes import (
    MODULES,
    JobProcess,
    KafkaProcess,
    local_signal_store,
)

_NAME, _ROUNDS, _SUBTASKS, _IN_FLIGHT = "stream_processor_time", 3, 2, 300
_SESSIONS, _VERSIONS, _CALLS_PER_SECOND = 2000, 12, 600
_WARM_CALLS, _MEASURED_CALLS, _SPARE_CALLS = 50_000, 30_000, 40_000
_CHECKPOINT_MILLIS, _PATIENCE_SECONDS = 60_000, 900.0
_DEFAULT = ("-XX:+UseG1GC",)
_QUICK = (*_DEFAULT, "-XX:TieredStopAtLevel=1")
#: Events of a call, and options of the virtual machine, by the end of the figure's name.
_CASES = {"one_event": (1, _DEFAULT), "four_events": (4, _DEFAULT), "quick_start": (1, _QUICK)}
#: What its processes run.
PROGRAMS = ("runtime/java",)


def measure() -> list[Figure]:
    """Take the measurements."""
    if reason := java_programs.missing_tools():
        raise BenchmarkError(reason)
    blueprint = load_blueprint("streaming-g6e").blueprint
    figures = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        java_programs.build(MODULES, folder / "maven.log")
        for name, (events, machine) in _CASES.items():
            rounds = [
                _microseconds(blueprint, folder / f"{name}-{number}", events, machine)
                for number in range(_ROUNDS)
            ]
            figures.append(Figure(f"{_NAME}_{name}_us", statistics.median(rounds), "us", simulated=True))
    return figures


def _microseconds(blueprint: Blueprint, directory: Path, events: int, machine: Sequence[str]) -> float:
    """Return the processor time of the job for a call with a number of events."""
    [job, *_] = blueprint.spec.streaming
    directory.mkdir()
    with ProcessGroup() as processes, ValkeyServer(directory / "valkey") as valkey, stub_endpoint() as url:
        kafka = KafkaProcess(directory, processes)
        kafka.start_for(job, partitions=4 * _SUBTASKS)
        configuration = job_configuration(
            job,
            platform=blueprint.metadata.name,
            bootstrap_servers=kafka.address,
            kafka_authentication="none",
            endpoint_url=url,
            store=local_signal_store(valkey.port),
            history_uri=(directory / "history").resolve().as_uri(),
        )
        # On a busy machine, calls wait for the endpoint: none of them may become a dead letter.
        endpoint = replace(
            configuration.endpoint,
            deadline_millis=60_000,
            max_in_flight=_SUBTASKS * _IN_FLIGHT,
            max_in_flight_per_subtask=_IN_FLIGHT,
        )
        process = JobProcess(
            directory,
            processes,
            replace(configuration, endpoint=endpoint),
            _SUBTASKS,
            machine=machine,
            checkpoint_millis=_CHECKPOINT_MILLIS,
        )
        process.start()
        clicks = list(_clicks(job, events))
        with kafka.producer(job, clicks, time.time()) as producer:
            first = _calls(url, _WARM_CALLS)
            begin = _processor_seconds(process)
            last = _calls(url, first + _MEASURED_CALLS)
            used = _processor_seconds(process) - begin
            producer.stop()
        return used / (last - first) * MICROSECONDS_PER_SECOND


def _clicks(job: StreamingJob, events: int) -> Iterator[Click]:
    """Yield the events of sessions that grow side by side; the versions of a session are seconds apart."""
    calls, number, now = 0, 0, round(time.time() * MILLISECONDS_PER_SECOND)
    for group in range((_WARM_CALLS + _MEASURED_CALLS + _SPARE_CALLS) // (_SESSIONS * _VERSIONS)):
        for version in range(_VERSIONS):
            for session in range(_SESSIONS):
                for event in range(events):
                    number += 1
                    fields = dict(job.events.examples[number % len(job.events.examples)])
                    fields[job.session.key] = key = f"session-{group}-{session}"
                    fields[job.session.time] = now + version * events + event
                    fields |= {job.session.id: f"event-{number}"} if job.session.id else {}
                    due = calls / _CALLS_PER_SECOND
                    yield Click(due, key, "event", json.dumps(fields).encode(), now)
                calls += 1


def _calls(url: str, minimum: int) -> int:
    """Return how many calls arrived at the endpoint, once there are enough."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with urllib.request.urlopen(f"{url}/count") as answer:  # noqa: S310 - the stub's own address
            count = int(json.load(answer))
        if count >= minimum:
            return count
        if time.monotonic() > deadline:
            raise BenchmarkError(f"only {count} of {minimum} calls after {_PATIENCE_SECONDS:.0f} s")
        time.sleep(0.2)


def _processor_seconds(job: JobProcess) -> float:
    times = psutil.Process(job.pid).cpu_times()
    return float(times.user + times.system)
