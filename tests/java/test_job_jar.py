"""The job's jar as a Flink cluster loads it: beside Flink's classes, without those of Maven's class path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from inference_blueprints import __version__
from inference_blueprints.resources import root
from inference_local.processes.free_ports import free_ports
from inference_runtime import runtime_directory

TARGET = runtime_directory() / "java" / "enrichment-job" / "target"


def class_path(name: str) -> set[str]:
    return set((TARGET / name).read_text(encoding="utf-8").strip().split(os.pathsep))


def test_the_jar_has_what_only_the_cloud_needs(tmp_path: Path) -> None:
    [port] = free_ports(1)
    document = json.loads(
        (root() / "tests" / "runtime" / "streaming" / "job.json").read_text(encoding="utf-8")
    )
    document["kafka"] |= {"authentication": "iam", "bootstrapServers": f"127.0.0.1:{port}"}
    document["signal"]["store"] |= {
        "host": "127.0.0.1",
        "port": port,
        "tls": True,
        "cluster": True,
        "user": "ads",
    }
    document["signal"]["store"] |= {"authentication": "iam", "cacheName": "signals", "region": "us-east-1"}
    configuration = tmp_path / "job.json"
    configuration.write_text(json.dumps(document), encoding="utf-8")
    jar = TARGET / f"enrichment-job-{__version__}.jar"
    path = [
        str(jar),
        str(TARGET / "test-classes"),
        *(class_path("test-class-path") - class_path("class-path")),
    ]
    slf4j = [each for each in class_path("class-path") if "slf4j-api" in each]
    java = shutil.which("java")
    assert java, "Java 17 is missing"
    ran = subprocess.run(
        [
            java,
            "-cp",
            os.pathsep.join([*path, *slf4j]),
            "inferenceblueprints.enrichment.JarProbe",
            str(configuration),
        ],
        env={**os.environ, "AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "example"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ran.stdout.splitlines() == [
        jar.as_uri().replace("///", "/"),
        "template",
        "client",
        "AWS_MSK_IAM",
        "UNREACHABLE",
    ], ran.stderr
