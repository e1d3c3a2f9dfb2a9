"""Several models and deployments at once, and latencies that come from a profile."""

import dataclasses
import time
import urllib.request
from pathlib import Path

import openai
import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing

_REQUESTS = "dynamo_frontend_requests_total"


def _blueprint(quickstart: Blueprint, models: dict[str, list[tuple[str, int]]]) -> Blueprint:
    """Return the quickstart with other models: pool and replicas of each deployment by the model's name."""
    document = quickstart.model_dump(by_alias=True, exclude_unset=True)
    (model,) = document["spec"]["models"]
    document["spec"]["pools"] = [
        {"name": "l40s", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 9}},
        {"name": "l4", "instanceTypes": ["g6.12xlarge"], "nodes": {"max": 9}},
    ]
    document["spec"]["models"] = [
        {
            **model,
            "name": name,
            "deployments": [
                {
                    "name": f"{pool}-{index}",
                    "aggregated": {"pool": pool, "replicas": replicas, "tensorParallelSize": 1},
                }
                for index, (pool, replicas) in enumerate(deployments)
            ],
        }
        for name, deployments in models.items()
    ]
    return Blueprint.model_validate(document)


def _client(endpoint: LocalEndpoint) -> openai.OpenAI:
    return openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0)


def _requests(metrics_url: str) -> float:
    """Return how many requests a frontend has answered."""
    page = urllib.request.urlopen(metrics_url, timeout=240).read().decode()  # noqa: S310 - of this machine
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(_REQUESTS))


def test_each_model_has_its_endpoint_and_its_deployments_share_it(
    tmp_path: Path, quickstart: Blueprint
) -> None:
    blueprint = _blueprint(quickstart, {"first": [("l40s", 1), ("l4", 3)], "second": [("l40s", 10)]})
    with ProcessGroup() as group, LocalServing(build_plan(blueprint), blueprint, tmp_path, group) as serving:
        first, second = serving.start(lambda _: None)
        assert (first.model, second.model) == ("first", "second")
        with _client(first) as client:  # requests of one connection
            for _ in range(8):
                client.completions.create(model="first", prompt="bado", max_tokens=1)
        with pytest.raises(openai.NotFoundError), _client(second) as client:
            client.completions.create(model="first", prompt="bado", max_tokens=1)
        assert [_requests(url) for url in first.metrics_urls] == [1, 1, 3, 3]
        workers = [each.name for each in group.processes if each.name.startswith("worker")]
    assert first.profile is None, "a deployment without a profile: nothing may be said of the speed"
    assert second.profile is not None
    assert first.context_length == min(
        process.engine.max_model_len
        for deployment in build_plan(blueprint).model("first").deployments
        for process in deployment.processes
        if process.engine
    )
    assert len(workers) == 1 + 3 + 8


def test_latencies_are_those_of_the_profile(
    tmp_path: Path, quickstart: Blueprint, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm")
    assert profile is not None
    slow = dataclasses.replace(
        profile,
        prefill_ttft_ms=tuple(1500.0 for _ in profile.prefill_ttft_ms),
        decode_itl=tuple(tuple(200.0 for _ in row) for row in profile.decode_itl),
    )
    monkeypatch.setattr(catalog, "latency_profile", lambda *_: slow)
    with ProcessGroup() as group:
        serving = LocalServing(build_plan(quickstart), quickstart, tmp_path, group)
        (endpoint,) = serving.start(lambda _: None)
        started = time.monotonic()
        usage = (
            _client(endpoint)
            .completions.create(model=endpoint.model, prompt=random_text(500, seed=1), max_tokens=6)
            .usage
        )
        took = time.monotonic() - started
    assert usage is not None
    assert usage.completion_tokens == 6
    # A lower bound, which a slow machine cannot break: the simulator's own curve takes a tenth of it.
    assert took >= 1.5 + 5 * 0.2 - 0.1
