"""The most tokens of a line, compared with counts of a real vocabulary.

`qwen_tokens.json` has texts with their number of tokens, counted with the vocabulary of Qwen in the package
dashscope on 2026-11-29: prose and messages in six scripts, JSON with numbers, and base64.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from batch.preparation.estimate import most_text_tokens, text_tokens
from batch.preparation.line_checks import BadLine, CheckedLine, checked
from inference_contracts.batch_configuration import JobLimits
from tests.runtime.batch.preparation.test_request_checks import REQUEST

SAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("qwen_tokens.json").read_text("utf-8"))
#: Bytes by four, as lines were counted before: far too few for these.
UNDERRATED = ("zh_Hans", "hi", "json", "base64")


@pytest.mark.parametrize("script", SAMPLES)
def test_no_text_has_more_tokens_than_are_counted(script: str) -> None:
    """Red if a line passes that the engine refuses."""
    text, tokens = SAMPLES[script]["text"], SAMPLES[script]["tokens"]
    assert tokens <= most_text_tokens(text) <= 2 * tokens


@pytest.mark.parametrize("script", UNDERRATED)
def test_a_line_that_no_deployment_can_hold_is_refused(script: str) -> None:
    """Red if the bytes decide: the line ran, and failed in the engine."""
    text = SAMPLES[script]["text"] * 20
    asked = text_tokens(text)
    body = {"model": REQUEST.model, "messages": [{"role": "user", "content": text}], "max_tokens": 10}
    limit = (asked + 20 * SAMPLES[script]["tokens"]) // 2
    short = dataclasses.replace(REQUEST, limits=JobLimits(request_tokens=limit))
    found = checked("a", body, short)
    assert isinstance(found, BadLine)
    assert "with the scripts and numbers of its text" in found.reasons[0]
    roomy = dataclasses.replace(
        REQUEST, limits=JobLimits(request_tokens=2 * 20 * SAMPLES[script]["tokens"] + 100)
    )
    assert isinstance(checked("a", body, roomy), CheckedLine)


def test_few_bytes_are_never_too_many_tokens() -> None:
    """Red if a short line is counted at length: a vocabulary has a token for each byte."""
    body = {"model": REQUEST.model, "messages": [{"role": "user", "content": "7" * 400}], "max_tokens": 10}
    limits = dataclasses.replace(REQUEST, limits=JobLimits(request_tokens=500))
    assert isinstance(checked("a", body, limits), CheckedLine)
