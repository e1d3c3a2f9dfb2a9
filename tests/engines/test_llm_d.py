"""llm-d on real engines: ``vllm serve`` with separate prefill and decode, behind the stand-ins.

What the stand-ins do is in ``tests/local/serving/test_llm_d_stand_ins.py``.
"""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from inference_blueprints.loading import load_blueprint
from inference_local.serving.llm_d.sidecar_stand_in import prefill_request
from inference_local.serving.running_workers import WorkerProcess
from inference_local.serving.vllm_cpu.machine import Machine
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind
from tests.engines.counting_client import words_of
from tests.engines.running import RunningEngines, running_engines

pytestmark = pytest.mark.engines

#: Memory for two prefill workers and one decode worker of two processes.
_MACHINE = Machine(memory_gib=15.0, processors=2)
_MODEL = "qwen3-32b"
_FAILED_TRANSFERS = "nixl_num_failed_transfers_total"
#: Bounds a hang, not a speed.
_SECONDS = 300.0
_WORDS = "one two three four five six seven eight nine ten "


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the endpoint."""

    status: int
    text: str

    @property
    def content(self) -> dict[str, Any]:
        """The JSON object."""
        return dict(json.loads(self.text))


@dataclass(frozen=True, slots=True)
class LlmD:
    """The deployment under test."""

    running: RunningEngines

    def ask(self, prompt: str, **others: object) -> Answer:
        """Send a chat completion."""
        return self.post({"messages": [{"role": "user", "content": prompt}], "max_tokens": 8, **others})

    def post(self, body: dict[str, object] | bytes) -> Answer:
        """Send a body to the chat completions of the endpoint."""
        (endpoint,) = self.running.endpoints
        data = body if isinstance(body, bytes) else json.dumps({"model": _MODEL, **body}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{endpoint.base_url}/chat/completions", data, headers)  # noqa: S310 -- of this machine
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
                return Answer(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode())

    def worker(self, role: str) -> WorkerProcess:
        """Return the first worker of a role."""
        (found,) = (each for each in self.running.serving.first_workers() if each.role == role)
        return found

    def ask_worker(self, role: str, body: dict[str, object]) -> dict[str, Any]:
        """Send a chat completion to the first worker of a role, past the router and the sidecar."""
        worker = self.worker(role)
        placed = self.running.serving.workers.placed[worker.name]
        url = f"http://{placed.place.address}:{worker.kind.planned.ports[0].number}"
        return self.running.ask_inside(url, "/v1/chat/completions", body)

    def process(self, worker: WorkerProcess) -> psutil.Process:
        """Return the process of a worker that serves its API."""
        (found,) = (each for each in self.running.processes.processes if each.name == worker.name)
        return psutil.Process(found.pid)


@pytest.fixture(scope="module")
def llm_d(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlmD]:
    blueprint = load_blueprint("llm-d-disaggregated").blueprint
    kind = VllmKind(blueprint, _MACHINE)
    with running_engines(blueprint, tmp_path_factory.mktemp("llm-d"), kind) as running:
        yield LlmD(running)


def test_the_decode_worker_reads_the_prompt_from_a_prefill_worker(llm_d: LlmD) -> None:
    names = ("external_prefix_cache_hits_total", "nixl_xfer_time_seconds_count", "prompt_tokens_total")
    before = {name: llm_d.running.counted("decode", name) for name in names}
    computed = llm_d.running.counted("prefill", "prompt_tokens_total")
    answer = llm_d.ask(f"read elsewhere {_WORDS * 30}")
    assert answer.status == 200, answer.text
    usage = answer.content["usage"]
    assert usage["completion_tokens"] == 8
    moved = {name: llm_d.running.counted("decode", name) - before[name] for name in names}
    assert llm_d.running.counted("prefill", "prompt_tokens_total") - computed == usage["prompt_tokens"]
    assert moved["external_prefix_cache_hits_total"] == usage["prompt_tokens"]
    assert moved["nixl_xfer_time_seconds_count"] >= 1


def test_cached_tokens_are_those_of_the_prefill_worker(llm_d: LlmD) -> None:
    workers = llm_d.worker("prefill").workers_of_role
    prompt = f"cached there {_WORDS * 30}"
    first, *_, last = [llm_d.ask(prompt).content["usage"] for _ in range(workers + 1)]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    # Whole blocks, and at least one token is computed.
    assert last["prompt_tokens_details"]["cached_tokens"] == (last["prompt_tokens"] - 1) // 64 * 64


def test_a_stream_has_every_token_and_its_usage(llm_d: LlmD) -> None:
    answer = llm_d.ask(
        f"stream {_WORDS * 20}",
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=20,
        logprobs=True,
    )
    *events, done = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert done == "[DONE]"
    *chunks, last = [json.loads(event) for event in events]
    tokens = [
        each
        for chunk in chunks
        for choice in chunk["choices"]
        for each in (choice["logprobs"] or {}).get("content", [])
    ]
    assert len(tokens) == last["usage"]["completion_tokens"] == 20
    assert last["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"messages": [{"role": "user", "content": "x"}], "model": "other"}, 404),
        ({"messages": [{"role": "user", "content": _WORDS * 4000}]}, 400),
        ({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1_000_000}, 400),
        ({"max_tokens": 4}, 400),
        (b'{"model": ', 400),
        (b"[1]", 400),
    ],
    ids=["unknown-model", "too-long-prompt", "too-long-answer", "no-messages", "malformed", "no-object"],
)
def test_what_cannot_be_answered_is_refused(
    llm_d: LlmD, body: dict[str, object] | bytes, status: int
) -> None:
    answer = llm_d.post(body)
    assert answer.status == status, answer.text
    assert answer.content


def test_prompts_of_a_killed_prefill_worker_are_refused_and_the_other_takes_over(llm_d: LlmD) -> None:
    victim = llm_d.worker("prefill")
    answers: list[Answer] = []
    threads = [
        threading.Thread(
            target=lambda number=number: answers.append(llm_d.ask(f"flight {number} {_WORDS * 60}"))
        )
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    _wait_until(lambda: llm_d.running.counted("prefill", "num_requests_running") > 0)
    llm_d.running.serving.kill(victim)
    for thread in threads:
        thread.join()
    # The sidecar does not try again. A request whose prompt was computed before is answered in any case.
    assert {answer.status for answer in answers} <= {200, 502}
    assert all(
        answer.content["usage"]["completion_tokens"] == 8 for answer in answers if answer.status == 200
    )
    _wait_until(lambda: all(llm_d.ask(f"after {number}").status == 200 for number in range(4)))
    llm_d.running.serving.replace_killed(print)
    assert [llm_d.ask(f"again {number}").status for number in range(4)] == [200] * 4


def test_a_prompt_that_cannot_be_read_from_its_prefill_worker_is_computed_again(llm_d: LlmD) -> None:
    """A prefill worker killed before its KV cache is read: the decode worker computes the prompt itself."""
    asked = {
        "model": _MODEL,
        "messages": [{"role": "user", "content": f"read too late {_WORDS * 30}"}],
        "max_tokens": 16,
        "temperature": 0,
        "ignore_eos": True,
    }
    # Another salt: neither answer may use the blocks of the other.
    alone = llm_d.ask_worker("decode", {**asked, "cache_salt": "alone"})
    salted = {**asked, "cache_salt": "from the prefill worker"}
    computed = llm_d.ask_worker("prefill", prefill_request(salted, ("max_tokens",)))
    transfer = computed["kv_transfer_params"]
    assert transfer["do_remote_prefill"] is True
    failed = llm_d.running.counted("decode", _FAILED_TRANSFERS)
    llm_d.running.serving.kill(llm_d.worker("prefill"))
    answer = llm_d.ask_worker("decode", {**salted, "kv_transfer_params": transfer})
    assert llm_d.running.counted("decode", _FAILED_TRANSFERS) > failed
    assert answer["usage"]["completion_tokens"] == 16
    (choice,), (expected,) = answer["choices"], alone["choices"]
    assert words_of(choice["message"]) == words_of(expected["message"]) != ""
    llm_d.running.serving.replace_killed(print)


def test_a_decode_worker_completes_its_streams_after_sigterm(llm_d: LlmD) -> None:
    """The plan's time for it is `--shutdown-timeout`. It is the last test: nothing answers after it."""
    process = llm_d.process(llm_d.worker("decode"))
    answers: list[Answer] = []
    options = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 150,
        "ignore_eos": True,
    }
    threads = [
        threading.Thread(target=lambda number=number: answers.append(llm_d.ask(f"drain {number}", **options)))
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    # A request that comes after the signal is refused.
    _wait_until(lambda: llm_d.running.counted("decode", "num_requests_running") == len(threads))
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert len(answers) == len(threads)
    for answer in answers:
        *_, last, done = [line for line in answer.text.splitlines() if line]
        assert done == "data: [DONE]"
        assert json.loads(last.removeprefix("data: "))["usage"]["completion_tokens"] == 150
    process.wait(_SECONDS)


def _wait_until(holds: Any) -> None:
    end = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.1)
