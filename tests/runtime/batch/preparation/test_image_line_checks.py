"""Lines and rows that ask for images: vllm-omni's rules, and what they count as."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.contracts.request import RequestTemplate
from batch.preparation.line_checks import BadLine, CheckedLine, check_request
from batch.preparation.row_checks import RowChecks
from inference_contracts.batch_body_fields import BODY_FIELDS, IMAGES_PATH
from inference_contracts.batch_limits import ANSWER_BYTES, PIXELS_PER_REQUEST
from inference_contracts.prompt_template import RenderingError
from tests.runtime.batch.preparation.test_request_checks import JSON, REQUEST

IMAGES = replace(REQUEST, endpoint=IMAGES_PATH)


def line(**body: Any) -> bytes:
    asked = {"model": "qwen", "prompt": "a red cup", **body}
    return json.dumps({"custom_id": "a", "method": "POST", "url": IMAGES_PATH, "body": asked}).encode()


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, 64 * 64),
        ({"size": "512x256"}, 32 * 16),
        ({"size": "500x250"}, 32 * 16),
        ({"size": "512x256", "n": 3, "num_inference_steps": 9, "seed": -1}, 3 * 32 * 16),
        (
            {"n": 10, "output_format": "webp", "response_format": "b64_json", "guidance_scale": 0},
            10 * 64 * 64,
        ),
    ],
)
def test_an_image_counts_by_its_pixels(body: dict[str, Any], tokens: int) -> None:
    found = check_request(line(**body), IMAGES)
    assert isinstance(found, CheckedLine), found
    assert (found.input_tokens, found.output_tokens) == (3, tokens)
    assert tokens > IMAGES.limits.request_tokens or "size" in body, "images have no longest request"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"prompt": ""}, "body.prompt: must be a string, not empty"),
        ({"prompt": ["a", "b"]}, "body.prompt: must be a string, not empty"),
        ({"n": 0}, "body.n: must be a whole number from 1 to 10; got 0"),
        ({"n": 11}, "body.n: must be a whole number from 1 to 10; got 11"),
        ({"n": True}, "body.n: must be a whole number"),
        ({"size": "auto"}, 'body.size: must be WIDTHxHEIGHT, such as 1024x1024; got "auto"'),
        ({"size": "1024"}, "body.size: must be WIDTHxHEIGHT"),
        ({"size": "0x512"}, "body.size: must be WIDTHxHEIGHT"),
        ({"size": "1x2x3"}, "body.size: must be WIDTHxHEIGHT"),
        ({"size": 512}, "body.size: must be WIDTHxHEIGHT"),
        (
            {"size": "2048x2048", "n": 4},
            "body.size: 4 images of 2048x2048 have 16,777,216 pixels; a line may have 16,000,000",
        ),
        ({"response_format": "url"}, 'body.response_format: must be one of b64_json; got "url"'),
        ({"response_format": "file"}, "body.response_format: must be one of b64_json"),
        ({"output_format": "gif"}, "body.output_format: must be one of png, jpeg, webp"),
        ({"use_system_prompt": "none"}, "body.use_system_prompt: must be one of custom"),
        ({"num_inference_steps": 201}, "body.num_inference_steps: must be a whole number from 1 to 200"),
        ({"guidance_scale": 20.5}, "body.guidance_scale: must be a number from 0 to 20; got 20.5"),
        ({"flow_shift": "high"}, "body.flow_shift: must be a number; got"),
        ({"negative_prompt": 7}, "body.negative_prompt: must be a string; got 7"),
        ({"lora": {"path": "/etc"}}, f"body.lora: not a field that {IMAGES_PATH} accepts here"),
        ({"messages": []}, "body.messages: not a field"),
        ({"max_tokens": 5}, "body.max_tokens: not a field"),
    ],
)
def test_a_bad_request_for_images_says_what_is_wrong(body: dict[str, Any], reason: str) -> None:
    found = check_request(line(**body), IMAGES)
    assert isinstance(found, BadLine), found
    [said] = found.reasons
    assert said.startswith(reason)


def test_all_reasons_are_given_at_once() -> None:
    found = check_request(line(n=0, size="x", prompt=3, seed=1.5), IMAGES)
    assert isinstance(found, BadLine)
    assert len(found.reasons) == 4


@pytest.mark.parametrize(
    ("given", "steps"), [({}, 9), ({"num_inference_steps": None}, 9), ({"num_inference_steps": 30}, 30)]
)
def test_a_line_without_steps_has_those_of_the_queue(given: dict[str, Any], steps: int) -> None:
    found = check_request(line(**given), replace(IMAGES, image_steps=9))
    assert isinstance(found, CheckedLine)
    assert found.body["num_inference_steps"] == steps


def test_the_largest_answer_fits() -> None:
    """An uncompressed PNG has 3 bytes per pixel, and base64 4 for 3."""
    assert PIXELS_PER_REQUEST * 4 < ANSWER_BYTES * 0.96


@given(st.dictionaries(st.sampled_from(sorted(BODY_FIELDS[IMAGES_PATH])), JSON | st.integers(0, 9)))
def test_no_body_breaks_the_check(fields: dict[str, Any]) -> None:
    found = check_request(line(**{"model": "qwen", **fields}), IMAGES)
    assert isinstance(found, CheckedLine | BadLine)


def test_a_row_becomes_a_request_for_images() -> None:
    template = RequestTemplate("a cup in {{ colour }}", parameters={"size": "512x512", "n": 2})
    checks = RowChecks(replace(IMAGES, template=template))
    try:
        found = checks.check({"custom_id": "cup", "colour": "red"}, "row-1")
    finally:
        checks.close()
    assert isinstance(found, CheckedLine)
    assert found.body == {"model": "qwen", "size": "512x512", "n": 2, "prompt": "a cup in red"}


def test_a_template_with_a_wrong_parameter_of_images_is_refused() -> None:
    template = RequestTemplate("{{ a }}", parameters={"size": "large", "n": 11})
    with pytest.raises(RenderingError, match=r"template.parameters: n: must be .* size: must be"):
        RowChecks(replace(IMAGES, template=template))
