"""Real llama-servers with the plan's arguments, alone or behind the stand-in for the load balancer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.free_ports import free_ports
from inference_local.serving.direct import balancer_stand_in
from inference_local.serving.llama_cpp.replaced_arguments import ServerPlace, arguments_here
from inference_local.serving.llama_cpp.server_build import llama_server

SERVED = "graviton-llama-cpp"
SECONDS = 240


def planned_arguments(model: Path) -> tuple[str, ...]:
    words = build_plan(load_blueprint(SERVED).blueprint).models[0].deployments[0].workers[0].arguments
    here, _ = arguments_here(words, ServerPlace(model, "127.0.0.1", threads=2))
    return here


@contextmanager
def serving(arguments: Sequence[str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    [port] = free_ports(1)
    command = [str(llama_server(print)), *arguments, "--port", str(port)]  # the last of two ports counts
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + SECONDS
            while not _is_ready(url):
                assert process.poll() is None, "the server refuses its arguments"
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield url, process
        finally:
            process.kill()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=SECONDS):  # noqa: S310 -- loopback
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def answer(url: str, **body: Any) -> str:
    messages = [{"role": "user", "content": "Which colour?"}]
    data = json.dumps({"messages": messages, "temperature": 0, "max_tokens": 80, **body}).encode()
    address, headers = f"{url}/v1/chat/completions", {"Content-Type": "application/json"}
    request = urllib.request.Request(address, data, headers)  # noqa: S310 -- loopback
    with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310 -- loopback
        return str(response.read().decode())


def words(text: str) -> str:
    return str(json.loads(text)["choices"][0]["message"]["content"])


@contextmanager
def balanced(model: Path, leaving: Path) -> Iterator[tuple[str, list[tuple[str, subprocess.Popen[bytes]]]]]:
    """Serve two servers behind the load balancer. Yield its URL, and URL and process of each server."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(planned_arguments(model))) for _ in range(2)]
        [port] = free_ports(1)
        addresses = json.dumps([url.removeprefix("http://") for url, _ in servers])
        command = [sys.executable, "-m", balancer_stand_in.__name__, str(port), addresses, str(leaving)]
        balancer = stack.enter_context(subprocess.Popen(command))
        stack.callback(balancer.kill)
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + SECONDS
        while listed(url) < len(servers):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield url, servers


def listed(balancer: str) -> int:
    """Return how many servers the load balancer sends requests to."""
    if not _is_ready(balancer):
        return 0
    with urllib.request.urlopen(f"{balancer}/health", timeout=SECONDS) as page:  # noqa: S310 -- loopback
        return len(json.load(page)["instances"])


def metric(server: str, name: str) -> float:
    """Return a metric of a server."""
    with urllib.request.urlopen(f"{server}/metrics", timeout=SECONDS) as page:  # noqa: S310 -- loopback
        lines = page.read().decode().splitlines()
    [value] = [line.rpartition(" ")[2] for line in lines if line.startswith(f"llamacpp:{name} ")]
    return float(value)
