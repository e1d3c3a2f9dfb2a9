"""KV cache moves between real engines, and requests go to the engine that has it."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint
from tests.engines.running import RunningEngines, running_engines

pytestmark = [pytest.mark.engines, pytest.mark.xdist_group("engines")]

BLOCK = 64
MODEL = "qwen3-8b"
#: Prompt tokens of a worker, whose cache holds blocks that it computed or received.
RECEIVED = "vllm:external_prefix_cache_hits_total"
COMPUTED = 'vllm:prompt_tokens_by_source_total{source="local_compute"}'
PROMPTS = "vllm:prompt_tokens_total"
BYTES = "vllm:nixl_bytes_transferred_sum"
FAILED = "vllm:nixl_num_failed_transfers_total"


def quickstart(instance_type: str, deployment: Mapping[str, Any]) -> Blueprint:
    """Return the quickstart with another deployment."""
    document = load_blueprint("quickstart-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["pools"][0]["instanceTypes"] = [instance_type]
    document["spec"]["models"][0]["deployments"] = [{"name": "main", **deployment}]
    return Blueprint.model_validate(document)


def text(number: int) -> str:
    """Return a prompt of several blocks that shares none with the prompt of another number."""
    return f"{number} " + " ".join(f"item {number * 1000 + index}" for index in range(80))


def ask(base_url: str, prompt: str) -> openai.types.CompletionUsage:
    """Send one chat request, and return its usage."""
    client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)
    messages: Any = [{"role": "user", "content": prompt}]
    answer = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=4, temperature=0)
    assert answer.usage
    return answer.usage


def cached(usage: openai.types.CompletionUsage) -> int:
    """Return the cached tokens of a request."""
    assert usage.prompt_tokens_details
    return usage.prompt_tokens_details.cached_tokens or 0


def in_whole_blocks(tokens: int) -> int:
    """Return the most tokens of a prompt that can be cached: the last one is always computed."""
    return (tokens - 1) // BLOCK * BLOCK


def counted(running: RunningEngines, process: str) -> list[dict[str, float]]:
    """Return the counters of each worker of a process of the plan, summed over its data parallel ranks."""
    return [
        _counters(f"{each.url}/metrics")
        for each in running.serving.served_processes()
        if each.process == process
    ]


def _counters(url: str) -> dict[str, float]:
    """Return the metrics of a worker, by name and `source`."""
    with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 -- a worker of this test
        lines = response.read().decode().splitlines()
    sums: dict[str, float] = {}
    for line in lines:
        found = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (\S+)", line)
        if found:
            source = re.search(r'source="\w+"', found[2] or "")
            name = found[1] + (f"{{{source[0]}}}" if source else "")
            sums[name] = sums.get(name, 0) + float(found[3])
    return sums


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngines]:
    """Return a prefill worker, and a decode worker whose heads are split over two processes."""
    roles = {
        role: {"pool": "l40s", "replicas": 1, "tensorParallelSize": size}
        for role, size in (("prefill", 1), ("decode", 2))
    }
    blueprint = quickstart("g6e.12xlarge", {"disaggregated": roles})
    with running_engines(blueprint, tmp_path_factory.mktemp("apart")) as running:
        yield running


def test_every_token_of_a_prompt_comes_from_the_prefill_worker(apart: RunningEngines) -> None:
    [prefill], [decode] = counted(apart, "prefill"), counted(apart, "decode")
    [endpoint] = apart.endpoints
    tokens = sum(ask(endpoint.base_url, text(number)).prompt_tokens for number in range(3))
    [prefill_then], [decode_then] = counted(apart, "prefill"), counted(apart, "decode")
    assert decode_then[RECEIVED] - decode[RECEIVED] == tokens
    assert decode_then[COMPUTED] == decode[COMPUTED]
    assert prefill_then[COMPUTED] - prefill[COMPUTED] == tokens
    assert decode_then[BYTES] > decode[BYTES]
    assert decode_then[FAILED] == 0


def test_a_repeated_prompt_is_computed_once(apart: RunningEngines) -> None:
    [endpoint] = apart.endpoints
    first = ask(endpoint.base_url, text(7))
    [before] = counted(apart, "prefill")
    ask(endpoint.base_url, text(7))
    [after] = counted(apart, "prefill")
    assert after[COMPUTED] - before[COMPUTED] == first.prompt_tokens - in_whole_blocks(first.prompt_tokens)


def test_no_engine_calls_its_connector_deprecated(apart: RunningEngines) -> None:
    workers = [each for each in apart.serving.served_processes() if each.process in {"prefill", "decode"}]
    logs = [Path(each.log_file).read_text(encoding="utf-8", errors="replace") for each in workers]
    assert all("NixlConnector" in log for log in logs)
    assert not any("NixlConnector is deprecated" in log for log in logs)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngines]:
    """Return two workers of both phases behind two frontends."""
    workers = {"pool": "l40s", "replicas": 2, "tensorParallelSize": 1}
    blueprint = quickstart("g6e.2xlarge", {"aggregated": workers})
    with running_engines(blueprint, tmp_path_factory.mktemp("together")) as running:
        yield running


def test_a_repeated_prompt_goes_to_the_worker_that_has_it(together: RunningEngines) -> None:
    """The other frontend sent none of them, so it knows from events where their blocks are."""
    serving = together.serving
    frontends = [f"{url}/v1" for url in serving.frontend_urls(serving.first_workers()[0].deployment)]
    assert len(frontends) == 2
    prompts = [text(100 + number) for number in range(6)]
    before = counted(together, "worker")
    with ThreadPoolExecutor(len(prompts)) as pool:
        first = list(pool.map(lambda prompt: ask(frontends[0], prompt), prompts))
    after = counted(together, "worker")
    used = [later[PROMPTS] - earlier[PROMPTS] for earlier, later in zip(before, after, strict=True)]
    assert all(used), "both workers have some of the prompts"
    again = [ask(frontends[1], prompt) for prompt in prompts]
    assert [cached(each) for each in first] == [0] * len(prompts)
    assert [cached(each) for each in again] == [in_whole_blocks(each.prompt_tokens) for each in again]
