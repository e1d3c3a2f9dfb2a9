"""Jobs of the batch API as a client submits them and waits for them, and workers that stand still."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import psutil
from openai.types import Batch

MODEL = "qwen3-8b"
PATIENCE_SECONDS = 120.0


def line(custom_id: str, *, tokens: int = 5, prompt: str = "") -> bytes:
    message = {"role": "user", "content": prompt or custom_id}
    body = {"model": MODEL, "messages": [message], "max_tokens": tokens}
    request = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(request).encode()


def submit(client: openai.OpenAI, lines: list[bytes], **metadata: str) -> Batch:
    file = client.files.create(file=("requests.jsonl", b"\n".join(lines)), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata=metadata,
    )


def wait(client: openai.OpenAI, batch: Batch, until: Callable[[Batch], bool]) -> Batch:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until(batch):
        assert time.monotonic() < deadline, batch
        time.sleep(0.3)
        batch = client.batches.retrieve(batch.id)
    return batch


def has_ended(batch: Batch) -> bool:
    return batch.status in {"completed", "failed", "expired", "cancelled"}


def rows(client: openai.OpenAI, file: str | None) -> list[dict[str, Any]]:
    return [json.loads(row) for row in client.files.content(file).text.splitlines()] if file else []


@contextmanager
def stopped_workers() -> Iterator[None]:
    """Let no worker take a step."""
    mine = psutil.Process().children(recursive=True)
    workers = [each for each in mine if "batch.worker" in _words(each)]
    assert workers
    for worker in workers:
        worker.suspend()
    try:
        yield
    finally:
        for worker in workers:
            worker.resume()


def _words(process: psutil.Process) -> list[str]:
    """Return a process's command line; none of one that has ended since it was listed."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
