"""Processor time and memory of a Dynamo frontend per request, per prompt token and per answer token.

A frontend with the plan's arguments of quickstart-g6e gets chat requests in front of simulated workers that
answer at once. Its vocabulary is that of gpt-oss, its prompts are parts of this project's documentation, and
answers are streamed. Three kinds of requests (short, long prompt, long answer) give the three times.
`frontend_load_memory` is the memory after all of them. The plan of frontends uses these figures
(`frontend_load.json` of the catalogue).
"""

from __future__ import annotations

import asyncio
import http.client
import json
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

from benchmarks.harness.figure import Figure
from benchmarks.harness.large_vocabulary import sentences, write_large_model
from benchmarks.harness.timing import BenchmarkError
from inference_blueprints.loading import load_blueprint
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.processes.free_ports import free_ports
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.targets.local.process_commands import environment, frontend_command

_BLUEPRINT = "quickstart-g6e"
_MODEL = "measured"
_WORKERS = 4
_READY_SECONDS = 120.0
_CONCURRENT = 4
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one kind: how many, words of a prompt, tokens of an answer."""

    requests: int
    words: int
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class RequestCost:
    """What one request of a kind had, and what it cost the frontend."""

    prompt_tokens: float
    answer_tokens: float
    seconds: float


_WARM = Load(40, 200, 20)
_SHORT, _PROMPT, _ANSWER = Load(600, 20, 1), Load(100, 6000, 1), Load(100, 20, 800)


def measure() -> list[Figure]:
    """Take the measurement."""
    with tempfile.TemporaryDirectory() as directory, ProcessGroup() as processes:
        folder = Path(directory)
        port, frontend = _start(folder, processes)
        _wait(port, processes)
        asyncio.run(_cost(port, frontend, _WARM))
        short, prompt, answer = (
            asyncio.run(_cost(port, frontend, each)) for each in (_SHORT, _PROMPT, _ANSWER)
        )
        memory = frontend.memory_info().rss / _MIB
        processes.check()
    per_prompt_token = (prompt.seconds - short.seconds) / (prompt.prompt_tokens - short.prompt_tokens)
    per_answer_token = (answer.seconds - short.seconds) / (answer.answer_tokens - short.answer_tokens)
    fixed = short.seconds - short.prompt_tokens * per_prompt_token - short.answer_tokens * per_answer_token
    return [
        Figure("frontend_load", fixed * 1e3, "ms per request"),
        Figure("frontend_load_prompt", per_prompt_token * 1e6, "ms per 1,000 prompt tokens"),
        Figure("frontend_load_answer", per_answer_token * 1e6, "ms per 1,000 answer tokens"),
        Figure("frontend_load_memory", memory, "MiB"),
    ]


def _start(folder: Path, processes: ProcessGroup) -> tuple[int, psutil.Process]:
    """Start the plan's frontend and simulated workers; return the frontend's port and process."""
    frontend = build_plan(load_blueprint(_BLUEPRINT).blueprint).models[0].deployments[0].entry_point
    variables = environment(frontend.environment, folder)
    model = write_large_model(folder / "model")
    [port] = free_ports(1)
    command = frontend_command(frontend, port)
    running = processes.start("frontend", command, environment=variables, log_path=folder / "frontend.log")
    worker = [command[0], "-m", "dynamo.mocker", "--model-path", str(model), "--model-name", _MODEL]
    worker += ["--num-workers", str(_WORKERS), "--block-size", "64", "--speedup-ratio", "0"]
    worker += ["--num-gpu-blocks-override", "8000", "--discovery-backend", "file"]
    processes.start("worker", worker, environment=variables, log_path=folder / "worker.log")
    return port, psutil.Process(running.pid)


def _wait(port: int, processes: ProcessGroup) -> None:
    """Wait until the frontend lists the model."""
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        processes.check()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as answer:
                if json.load(answer)["data"]:
                    return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.2)
    raise BenchmarkError("the frontend does not list its model")


async def _cost(port: int, frontend: psutil.Process, load: Load) -> RequestCost:
    """Send the requests of a kind, some at once, and return their mean cost."""
    free = asyncio.Semaphore(_CONCURRENT)
    before = _processor_seconds(frontend)
    async with aiohttp.ClientSession() as session:
        usages = await asyncio.gather(
            *(_ask(session, port, free, load, seed) for seed in range(load.requests))
        )
    seconds = _processor_seconds(frontend) - before
    prompt, answer = (sum(column) / load.requests for column in zip(*usages, strict=True))
    return RequestCost(prompt, answer, seconds / load.requests)


async def _ask(
    session: aiohttp.ClientSession, port: int, free: asyncio.Semaphore, load: Load, seed: int
) -> tuple[int, int]:
    """Send one request and read its stream; return its tokens of prompt and answer."""
    body = {
        "model": _MODEL,
        "messages": [{"role": "user", "content": sentences(seed * 7919 + load.words, load.words)}],
        "max_tokens": load.answer_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }
    last = b""
    async with free, session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as answer:
        if answer.status != http.client.OK:
            raise BenchmarkError(f"the frontend answered {answer.status}: {await answer.text()}")
        async for line in answer.content:
            last = line if line.startswith(b"data: {") else last
    usage = json.loads(last.removeprefix(b"data: "))["usage"]
    return usage["prompt_tokens"], usage["completion_tokens"]


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
