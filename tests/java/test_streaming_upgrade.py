"""The Flink job of an earlier release becomes that of this one while events come.

Managed Service for Apache Flink updates a running application in these steps: it takes a snapshot, which is a
savepoint of Flink, stops the job, and starts the new program with the new parallelism from that snapshot
(UpdateApplication without RunConfigurationUpdate; "Manage automatic snapshot creation" in
https://docs.aws.amazon.com/managed-flink/latest/java/how-snapshots.html).
"""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.stub_endpoint import stub_endpoint
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.spec.types import Blueprint
from inference_contracts.streaming_job import (
    JobEndpoint,
    StreamingJobConfiguration,
)
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.streaming import job_processes
from inference_local.streaming.click_stream import Click, click_stream, expected_of
from inference_local.streaming.job_processes import JobProcess, KafkaProcess, local_signal_store
from inference_local.streaming.streaming_clients import (
    SignalWatch,
    read_dead_letters,
    read_history,
)
from inference_local.streaming.streaming_counts import LeftBehind, counts_of
from inference_local.streaming.streaming_run import job_url
from tests.releases.recorded_releases import recorded_releases

RELEASE, BLUEPRINT = "95795729", "streaming-g6e"
SECONDS, STOPPED_AT = 16.0, 6.0
PATIENCE_SECONDS = 90.0
SUBTASKS = 2
MORE_SUBTASKS = 3
PARTITIONS = 12
_RUNS = re.compile(r"flink at (\S+) runs job (\w+)")


class FormerRelease:
    """The program, the local cluster and the configuration of a streaming job, as a release recorded them."""

    def __init__(self, folder: Path) -> None:
        [release] = [each for each in recorded_releases() if each.commit == RELEASE]
        assembly = release.assembly(BLUEPRINT, folder / "release")
        [sources] = assembly.glob("asset.*/runtime/java/pom.xml")
        self.runtime = sources.parents[1]
        self.version = re.findall(r"<version>(.+)</version>", sources.read_text())[0]
        template = release.templates(BLUEPRINT)["streaming-Streaming"]["Resources"]
        [document] = [each for each in template.values() if each["Type"] == "Custom::JobConfiguration"]
        parts = document["Properties"]["Document"]["Fn::Join"][1]
        text = "".join(each if isinstance(each, str) else "from-another-stack" for each in parts)
        self.configuration = StreamingJobConfiguration.from_json(text)


def patient(endpoint: JobEndpoint) -> JobEndpoint:
    """Return settings with which no call of a busy machine becomes a dead letter.

    The blueprint's job has one subtask. Here, several are in one process, which counts their calls together.
    """
    calls = MORE_SUBTASKS * endpoint.max_in_flight_per_subtask
    return replace(endpoint, deadline_millis=60_000, max_in_flight=calls)


class HeldClicks(list[Click]):
    """Records of which those due after `STOPPED_AT` are sent once they are released."""

    def __init__(self, clicks: Iterable[Click]) -> None:
        super().__init__(clicks)
        self.released = threading.Event()

    def __iter__(self) -> Iterator[Click]:
        for click in super().__iter__():
            if click.due_seconds > STOPPED_AT:
                self.released.wait(PATIENCE_SECONDS)
            yield click


def stop_with_snapshot(running: RunningProcess, folder: Path) -> Path:
    """Stop a job as the service does, and return its snapshot."""
    found = _RUNS.search(running.log_path.read_text())
    assert found
    address = f"{found[1]}/jobs/{found[2]}"
    body = {"targetDirectory": folder.as_uri(), "drain": False, "formatType": "CANONICAL"}
    request = urllib.request.Request(  # noqa: S310 - Flink's own address
        f"{address}/stop", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )

    def asked(what: urllib.request.Request | str) -> Any:
        with urllib.request.urlopen(what, timeout=30) as answer:  # noqa: S310 - Flink's own address
            return json.load(answer)

    operation = f"{address}/savepoints/{asked(request)['request-id']}"
    ended: dict[str, Any] = {}

    def has_ended() -> bool:
        # After this answer, the cluster closes and its process ends.
        ended.update(asked(operation))
        return bool(ended["status"]["id"] == "COMPLETED")

    until(has_ended, "the snapshot")
    assert "location" in ended["operation"], ended
    running.popen.wait(60)
    [snapshot] = folder.iterdir()
    return snapshot


def until(happened: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, f"still missing: {what}"
        time.sleep(0.2)


def with_own_deployment(blueprint: Blueprint) -> Blueprint:
    """Return a blueprint whose job is answered by a second deployment of its model, and by no other."""
    [model], [job, *_] = blueprint.spec.models, blueprint.spec.streaming
    [first] = model.deployments
    deployments = [first, first.model_copy(update={"name": "clicks"})]
    changes = {
        "models": [model.model_copy(update={"deployments": deployments})],
        "streaming": [job.model_copy(update={"deployments": ["clicks"]})],
    }
    return blueprint.model_copy(update={"spec": blueprint.spec.model_copy(update=changes)})


def calls_of(url: str) -> int:
    with urllib.request.urlopen(f"{url}/count", timeout=30) as answer:  # noqa: S310 - the stub's own address
        return int(json.loads(answer.read()))


def test_the_job_of_the_last_release_goes_on_with_more_subtasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former runner keeps state on the heap, this one in RocksDB. A changed uid, type of state or maximum
    of subtasks would stop the new job, or lose or repeat sessions. The new job has its own deployment: red
    too if it calls another one of its model."""
    former = FormerRelease(tmp_path)
    blueprint = with_own_deployment(load_blueprint(BLUEPRINT).blueprint)
    [job, *_] = blueprint.spec.streaming
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    java_programs.build(job_processes.MODULES, tmp_path / "maven.log")
    with monkeypatch.context() as patch:
        for module in (java_programs, job_processes):
            patch.setattr(module, "runtime_directory", lambda: former.runtime)
        java_programs.build(job_processes.MODULES, tmp_path / "former-maven.log")
    with (
        ProcessGroup() as processes,
        ValkeyServer(tmp_path / "valkey") as valkey,
        stub_endpoint() as url,
        stub_endpoint() as others,
    ):
        kafka = KafkaProcess(tmp_path, processes)
        kafka.start_for(job, partitions=PARTITIONS)
        today = job_configuration(
            job,
            platform="streaming",
            bootstrap_servers=kafka.address,
            kafka_authentication="none",
            endpoint_url=job_url(blueprint, job, {"qwen3-8b": others, "qwen3-8b--shopper": url}),
            store=local_signal_store(valkey.port),
            history_uri=(tmp_path / "history").as_uri(),
        )
        today = replace(today, endpoint=patient(today.endpoint))
        # What the release wrote, with the addresses of this machine.
        yesterday = replace(
            former.configuration,
            kafka=replace(
                former.configuration.kafka,
                bootstrap_servers=today.kafka.bootstrap_servers,
                authentication=today.kafka.authentication,
            ),
            endpoint=patient(replace(former.configuration.endpoint, url=url)),
            signal=replace(former.configuration.signal, store=today.signal.store),
            history=today.history,
        )
        with monkeypatch.context() as patch:
            for module in (java_programs, job_processes):
                patch.setattr(module, "runtime_directory", lambda: former.runtime)
            patch.setattr(job_processes, "__version__", former.version)
            first = JobProcess(old, processes, yesterday, SUBTASKS)
            first.start()
        began = time.time() + 1
        made = click_stream(job, seconds=SECONDS, began_millis=round(began * 1000), seed=7)
        expected, clicks = expected_of(made), HeldClicks(made)
        with (
            SignalWatch(valkey.client, job.signal.name) as watch,
            kafka.producer(job, clicks, began) as producer,
        ):
            until(lambda: time.time() > began + STOPPED_AT and watch.sightings, "the first signals")
            clicks.released.set()
            running = processes.processes[-1]
            snapshot = stop_with_snapshot(running, tmp_path / "snapshots")
            processes.forget(running)
            # The new job has the snapshot and nothing else of the former one.
            shutil.copytree(snapshot, new / "checkpoints" / snapshot.name)
            second = JobProcess(new, processes, today, MORE_SUBTASKS)
            second.start()
            before = calls_of(url)

            def left_behind() -> LeftBehind:
                processes.check()
                return LeftBehind(
                    watch.visible(),
                    read_history(tmp_path / "history"),
                    read_dead_letters(kafka.address, job),
                    watch.sightings,
                )

            until(lambda: producer.sent == len(clicks), "events")
            until(lambda: counts_of(expected, left_behind()).lost == 0, "signals")
            found = left_behind()
        assert calls_of(url) > before
        assert calls_of(others) == 0
    counts = counts_of(expected, found)
    unanswered = [each for each in found.dead_letters if each["reason"] not in {"late", "poison"}]
    assert unanswered == []
    assert " from checkpoint " in (new / "flink-1.log").read_text()
    assert (counts.lost, counts.duplicated, counts.repeated_dead_letters) == (0, 0, 0)
    assert counts.signals == len(expected.versions)
    assert counts.dead_letters == len(expected.poison) + len(expected.late) > 0
