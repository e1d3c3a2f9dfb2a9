"""A batch job on the real engine, whose workers are killed while it runs: each line is answered once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import openai
import psutil
import pytest
from openai.types import Batch
from rich.console import Console

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.batch.batch_job import local_token
from inference_local.local_platform import LocalPlatform
from inference_local.processes.child_processes import Restarts
from inference_local.run_steps import Steps
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.readiness import registered_workers
from tests.engines.counting_kind import CountingKind, prompt_to, words_after
from tests.local.batch_client import MODEL, has_ended, line, rows, submit

pytestmark = [pytest.mark.engines, pytest.mark.timeout(5400)]
LINES, WORDS, APART = 500, 1500, 3
JOB_SECONDS = 3000.0
#: Fewer than the restarts that a worker has.
MAX_KILLS = 4


def blueprint_file(directory: Path) -> Path:
    """Write the shipped blueprint, with answers that are read as the engine writes them."""
    shipped = (resources.blueprints_directory() / "batch-g6e.yaml").read_text()
    weights = "    weights: {huggingFace: Qwen/Qwen3-8B}\n"
    assert weights in shipped
    path = directory / "batch-g6e.yaml"
    path.write_text(shipped.replace(weights, f"{weights}    parsers: {{reasoning: none, toolCall: none}}\n"))
    return path


def processes(module: str) -> list[psutil.Process]:
    """Return the running processes of a Python module, in the order of their start."""
    found = [
        each
        for each in psutil.Process().children(recursive=True)
        if each.status() != psutil.STATUS_ZOMBIE and module in each.cmdline()
    ]
    return sorted(found, key=psutil.Process.create_time)


class Killer:
    """Kills workers at random each time that all have come back.

    platform: The platform, which starts its workers again.
    endpoint: The endpoint of the model.
    """

    def __init__(self, platform: LocalPlatform, endpoint: LocalEndpoint, workers: int) -> None:
        self._platform = platform
        self._restarts: Restarts = platform.restarts(print)
        self._port = int(endpoint.metrics_urls[0].split(":")[2].split("/")[0])
        self._workers = workers
        self._random = random.Random(7)  # noqa: S311 - no secret is made
        # A killed engine stays registered for some seconds.
        self._was_missed = True
        self.killed: Counter[str] = Counter()

    def step(self) -> None:
        """Start again what has ended; kill an engine and a worker of batch if all are there."""
        self._platform.restart_workers(self._restarts)
        registered = registered_workers(self._port, MODEL) or 0
        self._was_missed |= registered < self._workers
        if not self._was_missed or registered != self._workers or self.killed["batch.worker"] == MAX_KILLS:
            return
        self._was_missed = False
        for name in ("dynamo.vllm", "batch.worker"):
            os.killpg(self._random.choice(processes(name)).pid, signal.SIGKILL)
            self.killed[name] += 1


def run(client: openai.OpenAI, lines: list[bytes], killer: Killer) -> Batch:
    """Run a job and kill workers from its first answers to its end."""
    batch = submit(client, lines)
    deadline = time.monotonic() + JOB_SECONDS
    while not has_ended(batch):
        assert time.monotonic() < deadline, batch
        if batch.request_counts and batch.request_counts.completed:
            killer.step()
        time.sleep(1)
        batch = client.batches.retrieve(batch.id)
    return batch


def test_each_line_is_answered_once_while_workers_are_killed(tmp_path: Path) -> None:
    """A batch job of 500 lines whose workers are killed: each line is answered once, with the right words."""
    loaded = load_blueprint(str(blueprint_file(tmp_path)))
    plan, engines = build_plan(loaded.blueprint), CountingKind(loaded.blueprint)
    directory = tmp_path / "run"
    directory.mkdir()
    lines = [
        line(f"line-{number}", tokens=WORDS, prompt=prompt_to(number * APART, 30)) for number in range(LINES)
    ]
    with LocalPlatform(loaded, plan, directory, engines=engines) as platform:
        deployed = platform.start(Steps(Console(), platform.scope.step_titles))
        api = deployed.batch
        assert api
        client = openai.OpenAI(base_url=api.base_url, api_key=lambda: local_token(api), max_retries=2)
        killer = Killer(platform, deployed.endpoints[0], len(processes("dynamo.vllm")))
        batch = run(client, lines, killer)
        answers = rows(client, batch.output_file_id)
        errors = rows(client, batch.error_file_id)
    assert (batch.status, errors) == ("completed", [])
    assert batch.request_counts
    assert batch.request_counts.model_dump() == {"total": LINES, "completed": LINES, "failed": 0}
    # Each once, and with the words that the model writes after its prompt.
    assert Counter(row["custom_id"] for row in answers) == Counter(f"line-{each}" for each in range(LINES))
    for row in answers:
        start = int(row["custom_id"].removeprefix("line-")) * APART
        body = row["response"]["body"]
        assert body["choices"][0]["message"]["content"].split() == words_after(start, WORDS), row
        assert body["usage"]["completion_tokens"] == WORDS
    assert min(killer.killed["dynamo.vllm"], killer.killed["batch.worker"]) >= 2, killer.killed
