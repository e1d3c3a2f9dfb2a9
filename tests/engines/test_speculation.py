"""Speculative decoding of the plan at real vLLM, with layers and drafts of random weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openai
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint
from tests.engines.running import running_engines

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

_TOKENS = 24
#: By name: a shipped blueprint with another model, how it guesses, and its workers.
_CASES: Mapping[str, tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = {
    "its own layers": (
        "p5en-cluster",
        "deepseek-ai/DeepSeek-V3",
        {"mtp": {"tokens": 1}},
        {"pool": "h200", "replicas": 1, "tensorParallelSize": 8},
    ),
    "a draft": (
        "quickstart-g6e",
        "meta-llama/Llama-3.1-8B-Instruct",
        {
            "eagle": {
                "huggingFace": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
                "revision": "0a1b2c3d4e" * 4,
                "tokens": 2,
            }
        },
        {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1},
    ),
}


def _blueprint(name: str) -> Blueprint:
    shipped, model, speculation, workers = _CASES[name]
    document = load_blueprint(shipped).blueprint.model_dump(by_alias=True, exclude_unset=True)
    [first, *_] = document["spec"]["models"]
    changed = {"weights": {"huggingFace": model}, "speculation": speculation}
    document["spec"]["models"] = [
        first | changed | {"deployments": [{"name": "main", "aggregated": workers}]}
    ]
    return Blueprint.model_validate(document)


@pytest.mark.parametrize("name", _CASES)
def test_the_plans_guesses_start_and_answers_are_whole(name: str, tmp_path: Path) -> None:
    """`speculation` of the plan, with random weights: tokens are guessed, and an answer has every token."""
    with running_engines(_blueprint(name), tmp_path) as running:
        [endpoint] = running.endpoints
        with openai.OpenAI(base_url=endpoint.base_url, api_key="none", timeout=600, max_retries=0) as client:
            answer = client.chat.completions.create(
                model=endpoint.model,
                messages=[{"role": "user", "content": "one two three"}],
                max_tokens=_TOKENS,
                extra_body={"ignore_eos": True},
            )
        assert answer.usage is not None
        assert answer.usage.completion_tokens == _TOKENS
        guesses = running.counted("worker", "spec_decode_num_drafts_total")
        assert guesses >= _TOKENS // 3, "the engine did not guess at each step"
