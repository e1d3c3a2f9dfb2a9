"""The mirror as the process that a Job starts: it is killed, and its memory is watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference_blueprints.resources import root
from inference_local.emulator.emulator import Emulator
from tests.runtime.weights.conftest import BUCKET, FILES, MIB, Published, objects
from tests.runtime.weights.fake_hub import FakeHub

pytestmark = pytest.mark.clock

PATIENCE_SECONDS = 120.0
SHARDS = [path for path in FILES if path.endswith(".safetensors")]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator"), region="us-west-2") as running:
        running.client("s3").create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
        )
        yield running


@pytest.fixture
def emulated_s3(emulator: Emulator) -> Any:
    return emulator.client("s3")


@pytest.fixture
def start(hub: FakeHub, emulator: Emulator, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the mirror with a model's environment; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(published: Published, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "weights.mirror"],
            cwd=tmp_path,
            env={
                **os.environ,
                **emulator.environment(),
                **published.environment,
                **environment,
                "PYTHONPATH": str(root() / "runtime"),
                "HF_ENDPOINT": hub.endpoint,
                "HF_HOME": str(tmp_path),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_mirror_that_was_killed_goes_on_with_the_files_that_it_lacks(
    publish: Callable[..., Published], start: Callable[..., subprocess.Popen[str]], emulated_s3: Any
) -> None:
    published = publish()
    published.model.withheld.add(SHARDS[0])
    first = start(published, WEIGHTS_FILES_AT_ONCE="1")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (SHARDS[0], 0) not in published.model.asked or not objects(emulated_s3, f"{published.prefix}/"):
        assert time.monotonic() < deadline
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = objects(emulated_s3, f"{published.prefix}/")
    assert SHARDS[0] not in kept
    assert ".json" not in objects(emulated_s3, published.prefix)

    published.model.withheld.clear()
    published.model.asked.clear()
    second = start(published)
    output, _ = second.communicate(timeout=PATIENCE_SECONDS)
    assert second.returncode == 0, output
    assert objects(emulated_s3, f"{published.prefix}/") == FILES
    assert ".json" in objects(emulated_s3, published.prefix)
    assert kept.keys()
    assert {path for path, _ in published.model.asked}.isdisjoint(kept)


def test_memory_does_not_grow_with_the_model(
    publish: Callable[..., Published], start: Callable[..., subprocess.Popen[str]]
) -> None:
    shard = bytes(range(256)) * (40 * MIB // 256)
    small, large = publish(), publish({f"model-{index}.safetensors": shard for index in range(6)})
    limits = {"WEIGHTS_FILES_AT_ONCE": "2", "WEIGHTS_PARTS_IN_MEMORY": "2"}
    growth = _peak_bytes(start(large, **limits)) - _peak_bytes(start(small, **limits))
    # Two files at once and two parts of 5 MiB, each with a copy or two on its way: far below 240 MiB.
    assert growth < 60 * MIB


def _peak_bytes(process: subprocess.Popen[str]) -> int:
    """Watch a process to its good end and return the most memory that it was seen with."""
    watched, peak = psutil.Process(process.pid), 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None:
        assert time.monotonic() < deadline
        try:
            peak = max(peak, watched.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.01)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return peak
