"""The Java client at real llama-servers behind the stand-in for the load balancer."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from inference_local.serving.llama_cpp.model_file import TinyModel
from inference_runtime import runtime_directory
from tests.java.conftest import java_command
from tests.llama.served import balanced

pytestmark = pytest.mark.llama

CLIENT = "endpoint-client"


@pytest.fixture(scope="module")
def _built_client() -> None:
    """Build the client as `make test-java` does, without its own tests."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("javac") is None:
        pytest.fail("mvn or javac is missing: install Maven 3.8 or newer and a JDK of version 17 or newer")
    words = ["--batch-mode", "--quiet", "--file", str(runtime_directory() / "java")]
    modules = ["--projects", CLIENT, "--also-make", "-DskipTests", "package"]
    built = subprocess.run([maven, *words, *modules], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout


@pytest.mark.usefixtures("_built_client")
def test_the_java_client_calls_streams_decides_and_hedges(tmp_path: Path) -> None:
    """It turns red if a stream or a hedged call gets another text than a plain one, or a token is lost."""
    with balanced(TinyModel(4096).file(print), tmp_path) as (url, _):
        command = java_command(CLIENT, "inferenceblueprints.endpoint.HedgeProbe", f"{url}/v1", "qwen3-4b")
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    got = json.loads(ran.stdout)
    assert got["wholeTokens"] == got["streamTokens"] == 60
    assert got["parts"] > 10
    assert got["stream"] == got["whole"]
    assert not got["fallback"]
    assert got["hedgesBefore"] == 0
    assert (got["hedges"], got["attempts"]) == (1, got["calls"] + 1), "one request ran beside another"
    assert got["hedged"] == got["whole"]
