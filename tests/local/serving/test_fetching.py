"""What a request names is fetched by nobody: Dynamo's own frontend, with the plan's environment."""

import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.free_ports import free_ports
from inference_local.serving.process_commands import environment, frontend_command

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY")
_PATIENCE_SECONDS = 240.0


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """Return the address of a server, and behind it what it is asked for."""
    paths: list[str] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        paths.append(f"http://127.0.0.1:{server.server_port}")
        yield paths
        server.shutdown()


def _chat(port: int, content: object) -> None:
    """Ask until the model is there."""
    body = {"model": "simulated", "max_tokens": 2, "messages": [{"role": "user", "content": content}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS).close()  # noqa: S310
        except (urllib.error.HTTPError, ConnectionError, urllib.error.URLError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


@pytest.mark.parametrize("closed", [True, False], ids=["the-plan", "without-the-proxy"])
def test_a_frontend_asks_no_host_for_the_size_of_an_image(
    quickstart: Blueprint, tmp_path: Path, asked: list[str], *, closed: bool
) -> None:
    """Without what the plan sets it does, which is what makes this test one."""
    frontend = build_plan(quickstart).models[0].deployments[0].entry_point
    variables = environment(frontend.environment, tmp_path)
    variables["DYN_MM_ALLOW_INTERNAL"] = "1"  # this machine's addresses stand for public ones
    if not closed:
        variables = {name: value for name, value in variables.items() if name not in _PROXIES}
    directory = write_model_directory(catalog.model("Qwen/Qwen3-8B"), tmp_path / "model")
    [port] = free_ports(1)
    program = frontend_command(frontend, port)
    worker = [program[0], "-m", "dynamo.mocker", "--model-path", str(directory), "--model-name", "simulated"]
    worker += ["--block-size", "64", "--discovery-backend", "file"]
    with ExitStack() as running, (tmp_path / "log").open("w") as log:
        for command in (program, worker):
            process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
            running.callback(process.wait, 30)
            running.callback(process.terminate)
        _chat(port, "hello")
        image = {"type": "image_url", "image_url": {"url": f"{asked[0]}/secret.png"}}
        _chat(port, [{"type": "text", "text": "what is this?"}, image])
    assert asked[1:] == ([] if closed else ["/secret.png"])
