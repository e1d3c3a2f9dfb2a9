"""A Kafka broker and a Flink cluster with a job, as processes of this machine."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError

from inference_blueprints import __version__
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.errors import UserError
from inference_contracts.streaming_job import (
    JobSignalStore,
    StreamingJobConfiguration,
)
from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.processes.free_ports import free_ports
from inference_local.real_time.real_time_run import wait_for_line
from inference_local.streaming.click_stream import Click
from inference_local.streaming.streaming_clients import ClickProducer
from inference_runtime import runtime_directory

MODULES = ("local-streaming", "enrichment-job")
_JOB_CLASS = "inferenceblueprints.enrichment.EnrichmentJob"
_BROKER, _RUNNER = "inferenceblueprints.local.KafkaBroker", "inferenceblueprints.local.JobRunner"
CHECKPOINT_MILLIS = 2000
#: Temporary files of the virtual machines, in the folder of their processes. A killed Flink leaves 55 MB.
TEMPORARY = "tmp"
_LISTENING = re.compile(r"listening on (\S+)")
_RUNS = re.compile(r"flink at (\S+) runs job (\w+)")
_START_SECONDS = 120.0
_ANSWER_SECONDS = 2.0
_POLL_SECONDS = 0.2
# Flink serialises classes of the JDK; https://nightlies.apache.org/flink/flink-docs-stable/docs/deployment/java_compatibility/
_OPENED = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.util", "java.lang", "java.time")
)


class KafkaProcess:
    """A Kafka broker.

    directory: Folder for its data and its log.
    processes: The group that it joins.
    """

    def __init__(self, directory: Path, processes: ProcessGroup) -> None:
        self._directory = directory
        self._processes = processes
        #: Address of the broker, once it is started.
        self.address = ""

    def start(self, empty: Mapping[str, tuple[int, int]]) -> None:
        """Start the broker.

        empty: Names of what it has at the start, with partitions and hours of retention.
        Raises ProcessDied if it ends. Raises UserError if it is not ready in time.
        """
        broker, controller = free_ports(2)
        log = self._directory / "kafka.log"
        command = java_programs.java_command(
            "local-streaming",
            _BROKER,
            str(self._directory / "kafka"),
            str(broker),
            str(controller),
            *(f"{name}:{partitions}:{hours}" for name, (partitions, hours) in empty.items()),
            temporary=self._directory / TEMPORARY / "kafka",
            options=("-Xmx512m",),
        )
        self._processes.start("Kafka", command, environment=dict(os.environ), log_path=log)
        self.address = wait_for_line(log, _LISTENING, self._processes.check, _START_SECONDS)[1]

    def start_for(
        self, job: StreamingJob, *, partitions: int, letter_partitions: int = 1, hours: int = 24
    ) -> None:
        """Start the broker with the topics of a job, empty.

        partitions, letter_partitions: Partitions of its events, and of its dead letters.
        hours: Hours for which both are kept.
        """
        names = job.topic_names
        self.start(
            {
                **dict.fromkeys(names.all_events, (partitions, hours)),
                names.dead_letters: (letter_partitions, hours),
            }
        )

    def producer(self, job: StreamingJob, clicks: Sequence[Click], began: float) -> ClickProducer:
        """Return what sends clicks as events of a job."""
        return ClickProducer(self.address, job, clicks, began)


class JobProcess:
    """The job's jar in a Flink cluster that is one process.

    directory: Folder for checkpoints, the configuration and logs.
    configuration: What the job does.
    parallelism: Number of parallel subtasks.
    machine: Collector and compiler of the virtual machine.
    checkpoint_millis: Between two checkpoints: what the job does again after a kill, and how long the history
        waits.
    environment: Variables that point its clients of AWS at an emulator.
    """

    def __init__(
        self,
        directory: Path,
        processes: ProcessGroup,
        configuration: StreamingJobConfiguration,
        parallelism: int,
        *,
        machine: Sequence[str] = java_programs.START_QUICKLY,
        checkpoint_millis: int = CHECKPOINT_MILLIS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = {**os.environ, **(environment or {})}
        self._machine, self._checkpoint_millis = machine, checkpoint_millis
        self._directory = directory
        self._processes = processes
        self._file = directory / "job.json"
        self._file.write_text(configuration.to_json(), encoding="utf-8")
        self._parallelism = parallelism
        self._running: RunningProcess | None = None
        self._starts = 0
        self._flink = ""
        self._job = ""

    def start(self) -> None:
        """Start the cluster and the job, from the newest checkpoint if there is one.

        Raises ProcessDied if it ends. Raises UserError if the job does not run in time.
        """
        self._starts += 1
        log = self._directory / f"flink-{self._starts}.log"
        command = java_programs.java_command(
            "local-streaming",
            _RUNNER,
            str(_job_jar()),
            _JOB_CLASS,
            str(self._directory / "checkpoints"),
            str(self._checkpoint_millis),
            str(self._parallelism),
            "--configuration",
            self._file.resolve().as_uri(),
            temporary=self._directory / TEMPORARY / "flink",
            machine=self._machine,
            options=("-Xmx900m", *_OPENED),
        )
        self._running = self._processes.start("Flink", command, environment=self._environment, log_path=log)
        found = wait_for_line(log, _RUNS, self._processes.check, _START_SECONDS)
        self._flink, self._job = found[1], found[2]
        deadline = time.monotonic() + _START_SECONDS
        while not self._all_run():
            self._processes.check()
            if time.monotonic() > deadline:
                raise UserError(f"{log}: the job's tasks do not run after {_START_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """Kill the process with SIGKILL: its tasks, calls in flight and everything in its memory are gone."""
        if self._running is None:
            raise RuntimeError("the job is not running")
        self._processes.kill(self._running)
        self._running = None

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError if the job is not running."""
        if self._running is None:
            raise RuntimeError("the job is not running")
        return self._running.pid

    def counter(self, name: str) -> int | None:
        """Return the sum of a counter of the job over its subtasks, or None if Flink does not answer.

        name: Last part of the counter's name.
        """
        try:
            vertices = self._asked("")["vertices"]
            total, found = 0, False
            for vertex in vertices:
                path = f"/vertices/{vertex['id']}/subtasks/metrics"
                names = [each["id"] for each in self._asked(path) if each["id"].rpartition(".")[2] == name]
                for row in self._asked(f"{path}?get={','.join(names)}") if names else ():
                    total, found = total + round(row["sum"]), True
        except (URLError, OSError, ValueError, KeyError):
            return None
        return total if found else None

    def _all_run(self) -> bool:
        try:
            return all(each["status"] == "RUNNING" for each in self._asked("")["vertices"])
        except (URLError, OSError, ValueError, KeyError):
            return False

    def _asked(self, path: str) -> Any:
        url = f"{self._flink}/jobs/{self._job}{path}"
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310 - Flink's own address
            return json.load(answer)


def local_signal_store(port: int) -> JobSignalStore:
    """Return a job's settings for a Valkey server of this machine, without TLS and users.

    port: Its TCP port.
    """
    return JobSignalStore(
        host=LOOPBACK,
        port=port,
        tls=False,
        user=None,
        authentication="none",
        cluster=False,
        cache_name=None,
    )


def _job_jar() -> Path:
    # Those of former versions stay in this folder.
    return runtime_directory() / "java/enrichment-job/target" / f"enrichment-job-{__version__}.jar"
