"""What the jars weigh and contain."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from inference_blueprints import __version__
from inference_constructs.streaming.job_program import JOB_MODULE, MAVEN_COMMAND, copy_sources
from inference_runtime import runtime_directory

JAVA = runtime_directory() / "java"
MODULES = {
    "endpoint-client": "inferenceblueprints.endpoint",
    "prompt-template": "inferenceblueprints.prompts",
    "signal-reader": "inferenceblueprints.signals",
}
MAX_BYTES = 150_000


def jar(module: str) -> Path:
    return JAVA / module / "target" / f"{module}-{__version__}.jar"


@pytest.mark.parametrize("module", MODULES)
def test_a_jar_is_small_and_names_its_module(module: str) -> None:
    assert jar(module).stat().st_size <= MAX_BYTES
    with zipfile.ZipFile(jar(module)) as archive:
        manifest = archive.read("META-INF/MANIFEST.MF").decode()
        times = {entry.date_time for entry in archive.infolist()}
    assert f"Automatic-Module-Name: {MODULES[module]}\r\n" in manifest
    assert len(times) == 1, "the same sources give the same bytes"


def test_the_client_brings_jackson_and_failsafe_only() -> None:
    path = (JAVA / "endpoint-client" / "target" / "class-path").read_text(encoding="utf-8").strip()
    required = {
        "jackson-annotations",
        "jackson-core",
        "jackson-databind",
        "failsafe",
    }
    optional = (
        *("software/amazon/", "io/micrometer/", "io/opentelemetry/", "org/reactivestreams/", "org/slf4j/"),
        *("org/hdrhistogram/", "org/latencyutils/", "org/jspecify/"),
    )
    names = {
        Path(each).parent.parent.name
        for each in path.split(os.pathsep)
        if not any(o in each for o in optional)
    }
    assert names == required


def test_the_job_is_one_jar_without_flink() -> None:
    with zipfile.ZipFile(jar(JOB_MODULE)) as archive:
        names = set(archive.namelist())
        manifest = archive.read("META-INF/MANIFEST.MF").decode()
    assert "Main-Class: inferenceblueprints.enrichment.EnrichmentJob\r\n" in manifest
    packages = {name.rpartition("/")[0].replace("/", ".") for name in names if name.endswith(".class")}
    needed = {
        *("inferenceblueprints.endpoint", "inferenceblueprints.prompts", "inferenceblueprints.signals"),
        *("org.apache.flink.connector.kafka.source", "org.apache.kafka.clients.consumer"),
        *("software.amazon.msk.auth.iam", "inferenceblueprints.shaded.jackson.databind"),
    }
    assert needed <= packages
    in_the_runtime = (
        "org.apache.flink.streaming.api",
        "org.apache.flink.runtime.",
        "org.slf4j.",
        "org.junit.",
    )
    assert not [each for each in packages if each.startswith((*in_the_runtime, "com.fasterxml.jackson."))]
    assert "inferenceblueprints/endpoint/request_headers.json" in names


def build_of_the_cloud(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of CodeBuild, with the libraries that the first build downloaded."""
    maven, *arguments = MAVEN_COMMAND
    return subprocess.run(
        [maven, "--offline", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_build_of_the_cloud_gives_the_same_jars(tmp_path: Path) -> None:
    """From what a deployment uploads for CodeBuild. The job's jar has all others in it."""
    copy_sources(JAVA, tmp_path)
    ran = build_of_the_cloud(tmp_path)
    assert ran.returncode == 0, ran.stdout
    for module in (*MODULES, JOB_MODULE):
        [again] = (tmp_path / "runtime" / "java" / module / "target").glob(f"{module}-*[0-9].jar")
        assert again.read_bytes() == jar(module).read_bytes(), module


def test_a_build_without_the_shared_names_of_headers_fails(tmp_path: Path) -> None:
    copy_sources(JAVA, tmp_path)
    (tmp_path / "contracts" / "inference_contracts" / "request_headers.json").unlink()
    ran = build_of_the_cloud(tmp_path)
    assert ran.returncode != 0
    assert "The names of headers that the client shares with the Python library are missing." in ran.stdout
