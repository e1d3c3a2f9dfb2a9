"""Runs a streaming job, replays a stream of clicks, kills the job in the middle, and counts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inference_blueprints.measure.statistics import percentiles
from inference_blueprints.serving.streaming import DEAD_LETTER_PARTITIONS, job_size
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.serving.traffic import way_address
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.units import MILLISECONDS_PER_SECOND
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup
from inference_local.run_state import RunningModel, StreamDoor
from inference_local.run_steps import CLICKS, Step, Steps
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.platform_parts import PlatformPart
from inference_local.streaming.click_stream import (
    Click,
    Expected,
    click_stream,
    expected_of,
)
from inference_local.streaming.job_processes import (
    MODULES,
    TEMPORARY,
    JobProcess,
    KafkaProcess,
    local_signal_store,
)
from inference_local.streaming.streaming_clients import (
    SignalWatch,
    read_dead_letters,
    read_history,
)
from inference_local.streaming.streaming_counts import (
    LeftBehind,
    Outage,
    counts_of,
    is_settled,
    latencies,
    waiting_and_processing,
)
from inference_local.streaming.streaming_outcome import EventToSignal, StreamingOutcome

#: Length of the stream, in seconds.
_SECONDS = 60.0
_SEED = 7
#: When the job is killed, as a share of the stream.
_KILLED_AT = 0.5
#: What two processors run beside brokers and engines.
_MAX_PARALLELISM = 2
_SETTLE_SECONDS = 120.0
_SETTLE_PAUSE_SECONDS = 1.0
_LOOK_SECONDS = 0.5
#: Events begin after so many seconds, when all parts of the run are waiting for them.
_LEAD_SECONDS = 1.0
_LEAST_START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Parts:
    """The running parts of a stream."""

    directory: Path
    kafka: KafkaProcess
    job: JobProcess
    watch: SignalWatch
    described: StreamingJob
    """The job in the blueprint."""

    def left_behind(self) -> LeftBehind:
        """Return what the job has left behind so far."""
        return LeftBehind(
            self.watch.visible(),
            read_history(self.directory / "history"),
            read_dead_letters(self.kafka.address, self.described),
            self.watch.sightings,
        )


def run_streaming(
    blueprint: Blueprint,
    running: Sequence[RunningModel],
    directory: Path,
    *,
    engines: EngineKind,
    steps: Steps,
    seconds: float | None,
    door: Callable[[StreamingJob], StreamDoor] | None,
) -> tuple[StreamingOutcome, tuple[PlatformPart, ...]]:
    """Replay a stream of clicks through the first streaming job of a blueprint.

    blueprint: With at least one streaming job.
    directory: Folder for logs, checkpoints and history.
    engines: The engines that answer.
    steps: Where progress is shown: one step.
    seconds: Length of the stream. None for the default, a minute.
    door: Returns the front door as a job sees it. None without one.
    Returns `StreamingOutcome`: With a reason if Java or Maven is missing, or the engines are too slow for a
        stream.
    Returns `tuple of PlatformPart`: Rows of the table of parts.
    Raises UserError if the Java programs cannot be built or do not start. Raises ProcessDied if one ends that
        was not killed.
    """
    job, *others = blueprint.spec.streaming
    with steps.step(CLICKS) as step:
        reason = (
            java_programs.missing_tools() if engines.has_times else "these engines are too slow for a stream"
        )
        if reason is not None:
            step.result = f"SKIPPED: {reason}"
            return StreamingOutcome(job=job.name, skipped=reason), ()
        directory.mkdir(parents=True, exist_ok=True)
        step.update(detail="Maven builds the job")
        java_programs.build(MODULES, directory / "maven.log")
        [model] = [each for each in running if each.name == job.model]
        through = door(job) if door else None
        url = through.url if through else job_url(blueprint, job, model.addresses)
        try:
            with ProcessGroup() as processes, ValkeyServer(directory / "valkey") as valkey:
                step.update(detail="Kafka and Flink start")
                parts = _start(blueprint, job, url, directory, through, processes=processes, valkey=valkey)
                with parts.watch:
                    outcome = _replay(job, parts, processes, seconds or _SECONDS, step)
        finally:
            shutil.rmtree(directory / TEMPORARY, ignore_errors=True)
        step.result = f"{outcome.events} events, {outcome.lost} lost, {outcome.duplicated} duplicated"
    return replace(outcome, not_run=tuple(each.name for each in others)), _platform_parts(job)


def job_url(blueprint: Blueprint, job: StreamingJob, addresses: Mapping[str, str]) -> str:
    """Return the URL of the deployments that answer a job on this machine.

    addresses: URLs of the model by the first label of the host name that they stand for.
    """
    return addresses[way_address(blueprint.spec, job)]


def _start(
    blueprint: Blueprint,
    job: StreamingJob,
    url: str,
    directory: Path,
    door: StreamDoor | None,
    *,
    processes: ProcessGroup,
    valkey: ValkeyServer,
) -> _Parts:
    size = job_size(job)
    kafka = KafkaProcess(directory, processes)
    kafka.start_for(
        job,
        partitions=size.partitions,
        letter_partitions=DEAD_LETTER_PARTITIONS,
        hours=job.events.retention_hours,
    )
    configuration = job_configuration(
        job,
        platform=blueprint.metadata.name,
        bootstrap_servers=kafka.address,
        kafka_authentication="none",
        endpoint_url=url,
        store=local_signal_store(valkey.port),
        history_uri=(directory / "history").resolve().as_uri(),
        door=door.job if door else None,
    )
    process = JobProcess(
        directory,
        processes,
        configuration,
        min(size.parallelism, _MAX_PARALLELISM),
        environment=door.environment if door else None,
    )
    process.start()
    return _Parts(directory, kafka, process, SignalWatch(valkey.client, job.signal.name), job)


def _replay(
    job: StreamingJob, parts: _Parts, processes: ProcessGroup, seconds: float, step: Step
) -> StreamingOutcome:
    """Send the stream, kill the job in the middle, wait until nothing more happens, and count."""
    began = time.time() + _LEAD_SECONDS
    began_millis = round(began * MILLISECONDS_PER_SECOND)
    clicks = click_stream(job, seconds=seconds, began_millis=began_millis, seed=_SEED)
    expected = expected_of(clicks)
    superseded: list[int | None] = [None]
    with parts.kafka.producer(job, clicks, began) as producer:

        def look() -> None:
            processes.check()
            superseded[-1] = _larger(superseded[-1], parts.job.counter("superseded"))
            step.update(producer.sent, len(clicks), f"{len(parts.watch.sightings)} signals")

        _until(lambda: time.time() >= began + _KILLED_AT * seconds, look)
        killed = time.time() * MILLISECONDS_PER_SECOND
        parts.job.kill()
        superseded.append(None)
        step.update(detail="the job was killed and starts again")
        parts.job.start()
        _until(lambda: producer.sent == len(clicks), look)
    step.update(len(clicks), len(clicks), "waiting for the last signals")
    deadline = time.monotonic() + _SETTLE_SECONDS
    found = parts.left_behind()
    while not is_settled(expected, found) and time.monotonic() < deadline:
        look()
        time.sleep(_SETTLE_PAUSE_SECONDS)
        found = parts.left_behind()
    look()
    in_order = [
        (click.session, click.millis)
        for click in clicks
        if click.kind == "event"
        and click.millis == began_millis + round(click.due_seconds * MILLISECONDS_PER_SECOND)
    ]
    return _outcome(
        job, clicks, expected, found, in_order, superseded=superseded, killed=killed, seconds=seconds
    )


def _outcome(
    job: StreamingJob,
    clicks: Sequence[Click],
    expected: Expected,
    found: LeftBehind,
    in_order: Sequence[tuple[str, int]],
    *,
    superseded: Sequence[int | None],
    killed: float,
    seconds: float,
) -> StreamingOutcome:
    counts = counts_of(expected, found)
    # What became visible sooner was written before the kill: no process with Flink starts within a second.
    first = killed + _LEAST_START_SECONDS * MILLISECONDS_PER_SECOND
    recovered = next((each.seen_millis for each in found.sightings if each.seen_millis > first), None)
    outage = Outage(killed, found.sightings[-1].seen_millis if recovered is None else recovered)
    p50, p99, longest = latencies(found.sightings, outage)
    waiting, processing = waiting_and_processing(in_order, found, outage)
    kinds = [click.kind for click in clicks]
    known = [each for each in superseded if each is not None]
    return StreamingOutcome(
        job=job.name,
        events=len(clicks),
        sessions=len(expected.versions),
        repeated=kinds.count("repeated"),
        late=kinds.count("late"),
        poison=kinds.count("poison"),
        signals=counts.signals,
        superseded=sum(known) if known else None,
        dead_letters=counts.dead_letters,
        dead_letter_reasons=counts.dead_letter_reasons,
        repeated_dead_letters=counts.repeated_dead_letters,
        lost=counts.lost,
        duplicated=counts.duplicated,
        kills=1,
        recovery_seconds=None if recovered is None else (recovered - killed) / MILLISECONDS_PER_SECOND,
        event_to_signal_ms=EventToSignal(p50, p99, longest),
        waiting_ms=percentiles(waiting),
        processing_ms=percentiles(processing),
        prefix_cache_hit_ratio=counts.cached_tokens / counts.input_tokens if counts.input_tokens else None,
        events_per_second=len(clicks) / seconds,
    )


def _until(happened: Callable[[], bool], look: Callable[[], None]) -> None:
    while not happened():
        look()
        time.sleep(_LOOK_SECONDS)


def _larger(one: int | None, two: int | None) -> int | None:
    return max((each for each in (one, two) if each is not None), default=None)


def _platform_parts(job: StreamingJob) -> tuple[PlatformPart, ...]:
    return (
        PlatformPart(
            "Kafka", "real", "one broker in KRaft mode, without TLS and IAM, in place of three of MSK"
        ),
        PlatformPart(
            f"Streaming job {job.name}",
            "real",
            "the jar that is deployed, in a Flink cluster of one process; checkpoints are files",
        ),
        PlatformPart(
            f"Signal store of {job.name}",
            "real",
            "a Valkey of its own, whose build has no TLS, and without IAM; the history is files",
        ),
        PlatformPart(
            f"Clicks of {job.name}", "simulated", "sessions made of the blueprint's examples and load"
        ),
    )
