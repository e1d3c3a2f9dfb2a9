"""Bounds of requests: bodies that end an engine, or that it compiles for minutes, are found before."""

from __future__ import annotations

import json
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.catalogue import shipped
from inference_contracts.request_limits import RequestLimits, body_faults

Body = dict[str, Any]


def _schema(schema: object) -> Body:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def _nested(levels: int) -> object:
    schema: object = {"type": "string"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


#: A body beyond each bound, with the field that is named, and the same body just within it.
BEYOND: dict[str, tuple[str, Body, Body]] = {
    "allowed tokens": (
        "allowed_token_ids",
        {"allowed_token_ids": list(range(1025))},
        {"allowed_token_ids": list(range(1024))},
    ),
    "biases": (
        "logit_bias",
        {"logit_bias": {str(each): 1 for each in range(1025)}},
        {"logit_bias": {str(each): 1 for each in range(1024)}},
    ),
    # 128 in the worker, which counts the model's own end tokens too.
    "stop tokens": (
        "stop_token_ids",
        {"stop_token_ids": list(range(113)), "min_tokens": 1},
        {"stop_token_ids": list(range(112)), "min_tokens": 1},
    ),
    # 60 words of 20 tokens are 1,200: vLLM's server accepts them and its worker raises.
    "tokens of bad words": (
        "bad_words",
        {"bad_words": ["\u00e9" * 10] * 60},
        {"bad_words": ["abcdefg"] * 60},
    ),
    "tokens as bad words": ("bad_words_token_ids", {"bad_words_token_ids": [[1]]}, {}),
    # The worker adds it to the length of the prompt in 32 bits.
    "least tokens": (
        "min_tokens",
        {"min_tokens": 2**32 - 1, "max_tokens": 2**32 - 1},
        {"min_tokens": 9, "max_tokens": 9},
    ),
    "answers": ("n", {"n": 129}, {"n": 128}),
    "log probabilities": ("top_logprobs", {"top_logprobs": 21}, {"top_logprobs": 20, "logprobs": True}),
    "large schema": ("response_format", _schema({"a" * 131_073: 1}), _schema({"a" * 100_000: 1})),
    "a deep schema as text": (
        "guided_json",
        {"guided_json": json.dumps(_nested(200))},
        {"guided_json": json.dumps(_nested(20))},
    ),
    "nested repetitions": (
        "response_format",
        _schema({"pattern": "^([a-z]{1,100}){1,100}$"}),
        _schema({"pattern": "^([a-z]{1,10}){1,10}$"}),
    ),
    "many repetitions": (
        "tools",
        {"tools": [{"function": {"parameters": {"properties": {"a": {"pattern": "a{900}"}}}}}] * 5},
        {"tools": [{"function": {"parameters": {"properties": {"a": {"pattern": "a{900}"}}}}}] * 4},
    ),
    "a pattern's name": ("guided_json", {"guided_json": {"patternProperties": {"a{9999}": {}}}}, {}),
    "a regular expression": (
        "structured_outputs.regex",
        {"structured_outputs": {"regex": r"\{[0-9]{1,2000}"}},
        {"structured_outputs": {"regex": r"\{[0-9{1,2000}]"}},
    ),
    "a grammar": (
        "structured_outputs.grammar",
        {"structured_outputs": {"grammar": 'root ::= ("a"{1,80} "b"){1,80}'}},
        # 60,000 spaces took 21 seconds.
        {"structured_outputs": {"grammar": 'root ::= ("a" | "b")* {1,' + " " * 60_000}},
    ),
    "choices": ("guided_choice", {"guided_choice": ["a"] * 1001}, {"guided_choice": ["a"] * 1000}),
}


@pytest.mark.parametrize("case", BEYOND)
def test_what_an_engine_cannot_take_is_found_by_its_field(case: str) -> None:
    """Red if a bound of vLLM's worker or of its compiler of grammars is left out, or counts other things."""
    field, beyond, within = BEYOND[case]
    limits = catalog.request_limits("vllm")
    assert {each.param for each in body_faults({"model": "m", **beyond}, limits)} >= {field}
    assert list(body_faults({"model": "m", **within}, limits)) == []


def test_a_body_is_no_deeper_than_its_readers_can_go() -> None:
    """Red if a body of a thousand levels reaches readers that end, or raise, at 128."""
    deep: object = {}
    for _ in range(1000):
        deep = [deep]
    (fault,) = body_faults({"metadata": deep}, catalog.request_limits("sglang"))
    assert fault.param is None
    assert "128" in fault.message


def test_bounds_belong_to_the_engines_that_need_them() -> None:
    """Red if SGLang, which sums any number of biases into one row, gets the bounds of vLLM's worker."""
    body = {"logit_bias": {str(each): 1 for each in range(5000)}}
    assert not list(body_faults(body, catalog.request_limits("sglang")))
    assert list(body_faults(body, catalog.request_limits("vllmOmni")))


def test_limits_survive_the_way_through_json() -> None:
    """Red if a program in the cloud reads other limits than the catalogue has."""
    limits = catalog.request_limits("vllm")
    assert RequestLimits.from_record(json.loads(json.dumps(limits.as_record()))) == limits


def test_the_bounds_are_those_of_the_pinned_engines() -> None:
    """Red if an engine is raised and nobody reads the bounds of its new sources."""
    releases = {name: engine.engine_version for name, engine in shipped().engines.items()}
    assert dict(shipped().request_limits.read) == releases
