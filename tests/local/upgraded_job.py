"""A batch job that runs while its platform is upgraded: workers of the old release, then of the new one."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openai
from openai.types import Batch

from inference_blueprints.spec.types import Blueprint
from inference_contracts import batch_names
from inference_local.batch.batch_job import find_batch, local_token
from inference_local.batch.local_workers import worker_releases
from inference_local.emulator.emulator import Emulator
from inference_local.processes.child_processes import ProcessGroup
from inference_local.run_state import RunningBatch
from inference_runtime import runtime_directory

_SHORTER_TIMES = {
    batch_names.HEARTBEAT_SECONDS: "2",
    batch_names.VISIBILITY_SECONDS: "10",
    batch_names.DRAIN_SECONDS: "1",
    batch_names.POLL_SECONDS: "2",
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    #: A worker opens many connections at once; those beyond five would wait for each other.
    request_queue_size = 512


class HeldModel:
    """Answers chat completions. After a number of answers, it holds requests until it is released."""

    def __init__(self, answers: int) -> None:
        self.answered = 0
        self.released = threading.Event()
        self.reached = threading.Event()
        self._answers = answers
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.answer()
                self._send(
                    {
                        "id": "x",
                        "object": "chat.completion",
                        "created": 0,
                        "model": body["model"],
                        "choices": [
                            {
                                "index": 0,
                                "message": {"role": "assistant", "content": "yes"},
                                "finish_reason": "stop",
                            }
                        ],
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                    }
                )

            def do_GET(self) -> None:
                self._send({"object": "list", "data": [{"id": "qwen3-8b", "object": "model"}]})

            def _send(self, document: Mapping[str, Any]) -> None:
                text = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self) -> None:
        """Wait until the request may be answered."""
        self.answered += 1
        if self.answered > self._answers:
            self.reached.set()
            self.released.wait()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class UpgradedJob:
    """A job of one platform, its client and its workers."""

    def __init__(self, emulator: Emulator, blueprint: Blueprint, folder: Path, model: HeldModel) -> None:
        self._emulator = emulator
        self._folder = folder
        self._model = model
        self.running: RunningBatch = find_batch(emulator, blueprint.metadata.name, blueprint.spec.teams)
        self.client = openai.OpenAI(base_url=self.running.base_url, api_key=lambda: local_token(self.running))

    def submit(self, lines: list[bytes], **metadata: str) -> Batch:
        file = self.client.files.create(file=("requests.jsonl", b"\n".join(lines)), purpose="batch")
        return self.client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata=metadata,
        )

    @contextmanager
    def workers(self, code: Path | None = None) -> Iterator[None]:
        """Run the workers that the deployed charts ask for, and end them as a rollout does.

        code: Folder with the package ``batch`` of another release; None for that of this one.
        """
        [release] = worker_releases(self._emulator.recorded_releases())
        environment = {
            **release.environment,
            **self._emulator.environment(),
            **_SHORTER_TIMES,
            batch_names.ENDPOINT: self._model.address,
            "PATH": os.defpath,
            "PYTHONPATH": str(code or runtime_directory()),
            "HOME": str(self._folder),
        }
        name = "old" if code else "new"
        with ProcessGroup() as processes:
            for number in range(release.replicas):
                processes.start(
                    f"{name} worker {number}",
                    [sys.executable, "-m", "batch.worker"],
                    environment=environment,
                    log_path=self._folder / f"{name}-worker-{number}.log",
                    working_directory=self._folder,
                )
            yield
            processes.check()
