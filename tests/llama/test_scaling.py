"""Workers of the real llama-server that come and go."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.completions.completion_client import CompletionClient, RequestOutcome
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.llama_cpp.llama_kind import LlamaKind
from inference_local.serving.local_serving import LocalServing
from tests.llama.served import SECONDS, SERVED, metric

pytestmark = pytest.mark.llama

TOKENS = 40


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[LocalServing]:
    blueprint = load_blueprint(SERVED).blueprint
    kind = LlamaKind(blueprint)
    kind.prepare(print)
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, tmp_path, processes, engines=kind) as started,
    ):
        started.start(lambda _: None)
        yield started


def test_a_server_that_goes_completes_its_streams(serving: LocalServing) -> None:
    """It turns red if SIGTERM comes at once: llama-server then cuts its streams."""
    going = serving.first_workers()[0]
    deployment = going.deployment
    [page] = [each.url for each in serving.served_processes() if each.name == going.name]

    async def run() -> tuple[float, list[RequestOutcome]]:
        outcomes: list[RequestOutcome] = []
        async with aiohttp.ClientSession() as session:
            stopped = asyncio.Event()

            async def stream() -> None:
                [url] = serving.frontend_urls(deployment)
                client = CompletionClient(
                    session, url, deployment.model.name, timeout_seconds=SECONDS, clock=time.perf_counter
                )
                while not stopped.is_set():
                    outcomes.append(await client.complete("one two three", TOKENS, time.perf_counter()))

            tasks = [asyncio.create_task(stream()) for _ in range(4)]
            async with asyncio.timeout(SECONDS):
                while not await asyncio.to_thread(metric, page, "requests_processing"):
                    await asyncio.sleep(0.05)
            streams = await asyncio.to_thread(metric, page, "requests_processing")
            serving.workers.end(going)
            async with asyncio.timeout(SECONDS):
                while serving.workers.is_ending(going):
                    await asyncio.sleep(0.05)
            stopped.set()
            await asyncio.gather(*tasks)
        return streams, outcomes

    streams, outcomes = asyncio.run(run())
    assert streams > 0, "it had streams when it was told to go"
    assert [each.failure_detail or each.failure for each in outcomes if each.failure] == []
    assert {each.usage.completion_tokens for each in outcomes if each.usage} == {TOKENS}


def test_a_run_of_the_blueprint_scales_up_and_down_and_loses_no_request(tmp_path: Path) -> None:
    """It turns red if the load moves no worker, or a request is lost while one goes."""
    command = [str(Path(sys.executable).with_name("blueprints")), "local", "up", SERVED]
    options = ["--no-keep", "--seconds", "10", "--run-directory", str(tmp_path)]
    ran = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    scaling = report["scaling"]
    assert scaling["requests"] > scaling["clients"] > 0
    assert (scaling["lost"], scaling["cutStreams"]) == (0, 0)
    wanted = [each["wanted"] for each in scaling["samples"]]
    ready = [each["ready"] for each in scaling["samples"]]
    assert (wanted[0], max(wanted), wanted[-1]) == (2, 3, 2)
    assert (max(ready), ready[-1]) == (3, 2)
    deciding = [each for each in scaling["decisions"] if each["desired"] > each["workers"]]
    assert all(each["readings"]["requests-in-flight"] > 3 for each in deciding)
