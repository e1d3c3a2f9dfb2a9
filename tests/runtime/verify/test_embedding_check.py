"""A model of vectors or scores is asked for them and never for a chat; each wrong answer is named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from aiohttp import web

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.endpoint_checks import CheckedEndpoint, ask
from inference_blueprints.spec.types import Model

MODEL = Model.model_validate(
    {
        "name": "vectors",
        "weights": {"huggingFace": "Qwen/Qwen3-8B"},
        "task": "embed",
        "workload": {"inputTokens": 120, "peakRequestsPerSecond": 1},
        "deployments": [
            {"name": "main", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}}
        ],
    }
)
RANKER = MODEL.model_copy(update={"task": "rerank"})
GOOD = [[0.5, 0.25, -1.0], [0.5, 0.5, 1.0]]


def asked(
    body: str, status: int = 200, model: Model = MODEL
) -> tuple[list[CheckResult], list[tuple[str, Any]]]:
    """Return the results of the checks on an endpoint with this answer, and the requests it got."""
    requests: list[tuple[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append((request.path, await request.json()))
        return web.Response(status=status, text=body, content_type="application/json")

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "vectors", "object": "model"}]})

    async def run() -> list[CheckResult]:
        application = web.Application()
        application.router.add_get("/v1/models", models)
        application.router.add_post("/{path:.*}", answer)
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            return [each async for each in ask(CheckedEndpoint("vectors/main", base_url, model, 1, 60.0))]
        finally:
            await runner.cleanup()

    return asyncio.run(run()), requests


def of_vectors(vectors: Iterable[object]) -> str:
    """Return an answer of ``/v1/embeddings`` (https://platform.openai.com/docs/api-reference/embeddings)."""
    data = [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data, "model": "vectors"})


def test_a_healthy_embedding_model_is_asked_for_vectors_alone() -> None:
    results, requests = asked(of_vectors(GOOD))
    assert [(each.check, each.severity) for each in results] == [("models", "ok"), ("embeddings", "ok")]
    assert results[-1].message == "vectors/main: 2 vectors of 3 numbers"
    [(path, body)] = requests
    assert path == "/v1/embeddings"
    assert body["model"] == "vectors"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("no worker", 503, "no vectors: HTTP 503 (no worker)"),
        ("[]", 200, "the answer is not one of /v1/embeddings"),
        ('{"data": [{"text": "hello"}]}', 200, "the answer is not one of /v1/embeddings"),
        (of_vectors(GOOD[:1]), 200, "1 vectors for 2 inputs"),
        (of_vectors([[], []]), 200, "a vector is empty"),
        (of_vectors([[1.0, float("nan")], [1.0, 0.0]]), 200, "not finite numbers"),
        (of_vectors([[1.0], [1.0, 0.0]]), 200, "vectors of 1 and 2 numbers"),
        (of_vectors([[1.0, 0.0], [1.0, 0.0]]), 200, "two different inputs have the same vector"),
    ],
)
def test_a_wrong_answer_is_named(body: str, status: int, message: str) -> None:
    results, _ = asked(body, status)
    assert (results[-1].check, results[-1].severity) == ("embeddings", "error")
    assert message in results[-1].message


def test_an_endpoint_that_does_not_answer_is_named() -> None:
    async def run() -> list[CheckResult]:
        endpoint = CheckedEndpoint("vectors/main", "http://127.0.0.1:9", MODEL, 1, 60.0)
        return [each async for each in ask(endpoint)]

    results = asyncio.run(run())
    assert results[-1].check == "embeddings"
    assert "no vectors: " in results[-1].message


def of_scores(scores: Iterable[object]) -> str:
    """Return an answer of ``/v1/rerank`` (vLLM documentation, "Pooling Models", re-rank API)."""
    results = [{"index": index, "relevance_score": each} for index, each in enumerate(scores)]
    return json.dumps({"id": "rerank-1", "model": "vectors", "results": results})


def test_a_healthy_reranking_model_is_asked_for_scores_alone() -> None:
    results, requests = asked(of_scores([0.9, 0.1]), model=RANKER)
    assert [(each.check, each.severity) for each in results] == [("models", "ok"), ("scores", "ok")]
    [(path, body)] = requests
    assert path == "/v1/rerank"
    assert (body["model"], len(body["documents"])) == ("vectors", 2)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("no worker", 503, "no scores: HTTP 503 (no worker)"),
        (of_scores([0.9]), 200, "1 scores for 2 texts"),
        (of_scores([float("nan"), 0.1]), 200, "a score is not a finite number"),
        (of_scores([0.5, 0.5]), 200, "two different texts have the same score"),
    ],
)
def test_wrong_scores_are_named(body: str, status: int, message: str) -> None:
    results, _ = asked(body, status, RANKER)
    assert (results[-1].check, results[-1].severity) == ("scores", "error")
    assert message in results[-1].message
