"""The history of a streaming job through Flink's own plugin for S3, against the emulated S3.

Managed Service for Apache Flink writes with this plugin: AWS's example S3Sink has addresses with ``s3a://``.
The plugin takes ``s3://`` too, which former releases wrote to.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness.stub_endpoint import stub_endpoint
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_contracts.streaming_job import JobHistory, StreamingJobConfiguration
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup
from inference_local.streaming import job_processes
from inference_local.streaming.click_stream import Click, click_stream, expected_of
from inference_local.streaming.job_processes import (
    CHECKPOINT_MILLIS,
    JobProcess,
    KafkaProcess,
    local_signal_store,
)
from inference_local.streaming.streaming_clients import SignalWatch, read_dead_letters, read_history
from inference_local.streaming.streaming_counts import LeftBehind, counts_of
from inference_runtime import runtime_directory
from tests.java.test_streaming_upgrade import patient, stop_with_snapshot, until

SECONDS = 4.0
BUCKET, FOLDER = "history", "streaming-history/shopper"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Put the plugin where a Flink cluster has it."""
    pom = (runtime_directory() / "java" / "pom.xml").read_text(encoding="utf-8")
    [version] = re.findall(r"<flink.version>(.*)</flink.version>", pom)
    [copy] = re.findall(r"<artifactId>maven-dependency-plugin</artifactId>\s*<version>(.*?)<", pom)
    maven = shutil.which("mvn")
    assert maven
    ran = subprocess.run(
        [
            *(maven, "--batch-mode", "-q", f"org.apache.maven.plugins:maven-dependency-plugin:{copy}:copy"),
            f"-Dartifact=org.apache.flink:flink-s3-fs-hadoop:{version}",
            f"-DoutputDirectory={tmp_path / 'plugins' / 's3-fs-hadoop'}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout
    return tmp_path / "plugins"


def settings(folder: Path, emulator: Emulator) -> Path:
    """Write the settings of a cluster whose S3 is the emulator."""
    access = emulator.environment()
    folder.mkdir()
    (folder / "config.yaml").write_text(
        f"s3.endpoint: {emulator.endpoint_url}\n"
        f"s3.endpoint.region: {access['AWS_REGION']}\n"
        "s3.path.style.access: 'true'\n"
        f"s3.access-key: '{access['AWS_ACCESS_KEY_ID']}'\n"
        f"s3.secret-key: {access['AWS_SECRET_ACCESS_KEY']}\n"
    )
    return folder


def downloaded(emulator: Emulator, folder: Path) -> Path:
    """Return a folder with the objects of the history."""
    s3 = emulator.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=FOLDER):
        for each in page.get("Contents", ()):
            target = folder / each["Key"]
            target.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(BUCKET, each["Key"], str(target))
    return folder / FOLDER


def test_a_job_goes_on_from_snapshots_with_another_scheme_and_other_subtasks(
    tmp_path: Path, plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin that cannot write the files of a sink, or does not find those of a snapshot that has the other
    scheme, stops the job. What Flink merges if addresses differ: RestartsTest."""
    [job, *_] = load_blueprint("streaming-g6e").blueprint.spec.streaming
    java_programs.build(job_processes.MODULES, tmp_path / "maven.log")
    for name in ("former", "more", "fewer"):
        (tmp_path / name).mkdir()
    with (
        Emulator(tmp_path / "emulator", region="us-west-2") as emulator,
        ProcessGroup() as processes,
        ValkeyServer(tmp_path / "valkey") as valkey,
        stub_endpoint() as url,
    ):
        emulator.client("s3").create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
        )
        monkeypatch.setenv("FLINK_PLUGINS_DIR", str(plugins))
        monkeypatch.setenv("FLINK_CONF_DIR", str(settings(tmp_path / "conf", emulator)))
        kafka = KafkaProcess(tmp_path, processes)
        kafka.start_for(job, partitions=12)
        configuration = job_configuration(
            job,
            platform="streaming",
            bootstrap_servers=kafka.address,
            kafka_authentication="none",
            endpoint_url=url,
            store=local_signal_store(valkey.port),
            history_uri=f"s3://{BUCKET}/{FOLDER}",
        )
        configuration = replace(configuration, endpoint=patient(configuration.endpoint))
        today = replace(configuration, history=JobHistory(uri=f"s3a://{BUCKET}/{FOLDER}"))
        clicks: list[Click] = []
        with SignalWatch(valkey.client, job.signal.name) as watch:

            def stage(name: str, configured: StreamingJobConfiguration, subtasks: int) -> None:
                """Start a job, and send it sessions until it has answered some."""
                # At its first checkpoint, a subtask forgets folders that it did not write to.
                interval = CHECKPOINT_MILLIS if name == "fewer" else 60_000
                folder = tmp_path / name
                JobProcess(folder, processes, configured, subtasks, checkpoint_millis=interval).start()
                before, began = len(watch.sightings), time.time()
                sent = click_stream(
                    job, seconds=SECONDS, began_millis=round(began * 1000), seed=len(clicks) + 1
                )
                clicks.extend(sent)
                with kafka.producer(job, sent, began) as producer:
                    until(lambda: producer.sent == len(sent), "events")
                until(lambda: len(watch.sightings) >= before + 5, "signals")

            def stop(name: str, following: str) -> None:
                running = processes.processes[-1]
                snapshot = stop_with_snapshot(running, tmp_path / f"snapshot-{name}")
                processes.forget(running)
                shutil.copytree(snapshot, tmp_path / following / "checkpoints" / snapshot.name)

            stage("former", configuration, 2)
            stop("former", "more")
            assert read_history(downloaded(emulator, tmp_path / "before")), "files of s3://"
            stage("more", today, 3)
            stop("more", "fewer")
            stage("fewer", today, 1)

            def left_behind() -> LeftBehind:
                processes.check()
                return LeftBehind(
                    watch.visible(),
                    read_history(downloaded(emulator, tmp_path / "after")),
                    read_dead_letters(kafka.address, job),
                    watch.sightings,
                )

            expected = expected_of(clicks)
            until(lambda: counts_of(expected, left_behind()).lost == 0, "signals and their history")
            counts = counts_of(expected, left_behind())
    assert (counts.lost, counts.duplicated) == (0, 0)
    for name in ("more", "fewer"):
        assert " from checkpoint " in (tmp_path / name / "flink-1.log").read_text()
