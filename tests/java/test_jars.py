"""What the jars weigh and contain."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from inference_blueprints.resources import root, runtime_directory

JAVA = runtime_directory() / "java"
MODULES = {
    "endpoint-client": "inferenceblueprints.endpoint",
    "prompt-template": "inferenceblueprints.prompts",
    "signal-reader": "inferenceblueprints.signals",
}
MOST_BYTES = 150_000


def jar(module: str) -> Path:
    [found] = (JAVA / module / "target").glob(f"{module}-*[0-9].jar")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_a_jar_is_small_and_names_its_module(module: str) -> None:
    assert jar(module).stat().st_size <= MOST_BYTES
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
    with zipfile.ZipFile(jar("enrichment-job")) as archive:
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


def test_another_build_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another folder, from the sources alone, with the libraries that the first build downloaded."""
    build = tmp_path / "runtime" / "java"
    shutil.copytree(JAVA, build, ignore=shutil.ignore_patterns("target", "test"))
    shared = Path("inference_blueprints", "contracts", "request_headers.json")
    (tmp_path / shared).parent.mkdir(parents=True)
    shutil.copy(root() / shared, tmp_path / shared)
    maven = ("mvn", "--offline", "--batch-mode", "--quiet", "--file", str(build), "-DskipTests")
    modules = ("--projects", ",".join(MODULES))
    ran = subprocess.run(
        [*maven, *modules, "package"], capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stdout
    for module in MODULES:
        again = build / module / "target" / jar(module).name
        assert again.read_bytes() == jar(module).read_bytes(), module
