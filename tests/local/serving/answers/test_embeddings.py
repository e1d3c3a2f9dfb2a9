"""Dynamo's real frontend, as the plan starts it, in front of an embedding worker."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from inference_local.serving.process_commands import environment, frontend_command

_READY_SECONDS = 240
_NAME = "vectors"
_BLUEPRINT = {
    "apiVersion": "inference-blueprints/v1alpha1",
    "kind": "Blueprint",
    "metadata": {"name": "here"},
    "spec": {
        "environment": {"region": "us-west-2"},
        "cluster": {"eks": {"version": "1.35"}},
        "pools": [{"name": "l40s", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 2}}],
        "models": [
            {
                "name": _NAME,
                "weights": {"huggingFace": "Qwen/Qwen3-0.6B"},
                "task": "embed",
                "routing": {"roundRobin": {}},
                "workload": {"inputTokens": 500, "peakRequestsPerSecond": 1},
                "deployments": [
                    {"name": "main", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}}
                ],
            }
        ],
    },
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """Return a client of the frontend once the model is listed."""
    folder = tmp_path_factory.mktemp("embeddings")
    write_model_directory(catalog.model("Qwen/Qwen3-0.6B"), folder / "model")
    plan = build_plan(Blueprint.model_validate(_BLUEPRINT)).models[0].deployments[0]
    variables = environment(plan.entry_point.environment, folder)
    [port] = free_ports(1)
    engine: list[str | Path] = [
        sys.executable,
        Path(__file__).with_name("embedding_engine.py"),
        folder / "model",
        _NAME,
    ]
    address = f"http://127.0.0.1:{port}/v1"
    with (
        ProcessGroup() as processes,
        openai.OpenAI(base_url=address, api_key="none", max_retries=0) as asking,
    ):
        command = frontend_command(plan.entry_point, port)
        processes.start("frontend", command, environment=variables, log_path=folder / "frontend.log")
        processes.start("engine", engine, environment=variables, log_path=folder / "engine.log")
        _wait_until_listed(asking, processes)
        yield asking
        processes.check()


def _wait_until_listed(asking: openai.OpenAI, processes: ProcessGroup) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        processes.check()
        try:
            if [model.id for model in asking.models.list().data] == [_NAME]:
                return
        except openai.APIError as error:
            if time.monotonic() > deadline:
                raise AssertionError("the frontend does not answer") from error
        assert time.monotonic() < deadline, "the frontend does not list the embedding model"
        time.sleep(0.05)


def test_inputs_become_vectors(client: openai.OpenAI) -> None:
    """With KV-aware routing, the frontend does not list the model: the worker reads the text itself."""
    answer = client.embeddings.create(model=_NAME, input=["one", "three"], encoding_format="float")
    assert [each.embedding for each in answer.data] == [[0.5, 3.0], [0.5, 5.0]]


def test_it_does_not_chat(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model=_NAME, messages=[{"role": "user", "content": "Hello"}])
