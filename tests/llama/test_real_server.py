"""The real llama-server takes the plan's arguments, and answers as when it is run by hand."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.processes.free_ports import free_ports
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.targets.local.llama_cpp.server_build import llama_server
from inference_blueprints.targets.local.llama_cpp.tiny_model import TinyModel

pytestmark = pytest.mark.llama

SERVED = "graviton-llama-cpp"
MODELS = {"qwen2": TinyModel(4096), "llama": TinyModel(2048, "llama", 3, 128, 8, 4, 256, 11)}
#: Arguments that this machine sets: its file, its processors and a smaller cache.
HERE = {"--threads": "2", "--threads-batch": "2", "--parallel": "2", "--ctx-size": "4096"}
SECONDS = 60


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Path:
    return MODELS[request.param].file(print)


def planned_arguments(model: Path) -> list[str]:
    words = list(build_plan(load_blueprint(SERVED).blueprint).models[0].deployments[0].workers[0].arguments)
    url = words.index("--model-url")
    del words[url : url + 2]
    for name, value in {**HERE, "--model": str(model), "--host": "127.0.0.1"}.items():
        words[words.index(name) + 1] = value
    return words


@contextmanager
def serving(arguments: list[str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    [port] = free_ports(1)
    command = [str(llama_server(print)), *arguments, "--port", str(port)]
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


def test_the_plan_s_server_answers_as_one_run_by_hand(model: Path) -> None:
    """It turns red if an argument of the plan changes what the model answers."""
    with serving(planned_arguments(model)) as (url, _):
        planned = words(answer(url, max_tokens=24))
    with serving(["--model", str(model), "--host", "127.0.0.1"]) as (url, _):
        assert words(answer(url, max_tokens=24)) == planned


def test_it_streams_keeps_to_a_schema_and_reports_metrics(model: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    with serving(planned_arguments(model)) as (url, _):
        events = answer(url, stream=True, max_tokens=5).split("\n\n")
        assert "[DONE]" in events[-2]
        assert len(events) > 5
        assert json.loads(words(answer(url, response_format=form)))["colour"] in ("red", "blue")
        with urllib.request.urlopen(f"{url}/metrics", timeout=SECONDS) as page:  # noqa: S310
            metrics = page.read().decode()
    assert all(f"\nllamacpp:{name} " in metrics for name in ("requests_processing", "requests_deferred"))


def test_sigterm_ends_the_server_at_once() -> None:
    """The plan waits before it sends the signal, because the server would cut answers."""
    with serving(planned_arguments(MODELS["qwen2"].file(print))) as (_, process):
        process.terminate()
        assert process.wait(timeout=SECONDS) == 0
