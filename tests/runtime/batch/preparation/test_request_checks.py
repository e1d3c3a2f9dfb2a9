"""A bad line is refused with every reason; a good one is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.contracts.request import Input, JobRequest
from batch.preparation.estimate import input_tokens, output_tokens
from batch.preparation.line_checks import BadLine, CheckedLine, check_request
from inference_contracts.batch_body_fields import BODY_FIELDS
from inference_contracts.batch_configuration import Capacity, JobLimits

REQUEST = JobRequest(
    job="j",
    team="ads",
    queue="catalog",
    model="qwen",
    endpoint="/v1/chat/completions",
    inputs=(Input("bucket", "in.jsonl"),),
    deadline=1e10,
    budget_usd=100.0,
    capacity=Capacity(1000.0, 100.0, 1.0, 4.0),
    limits=JobLimits(request_tokens=1000),
    data_prefixes=("s3://acme/pictures/",),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def line(**changes: Any) -> bytes:
    body = {"model": "qwen", "messages": [{"role": "user", "content": "hello there"}], "max_tokens": 20}
    body.update(changes.pop("body", {}))
    whole = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body, **changes}
    return json.dumps(whole).encode()


def reasons(content: bytes) -> tuple[str, ...]:
    found = check_request(content, REQUEST)
    assert isinstance(found, BadLine), found
    return found.reasons


def test_a_good_line_is_measured() -> None:
    found = check_request(line(), REQUEST)
    assert isinstance(found, CheckedLine)
    assert (found.custom_id, found.input_tokens, found.output_tokens) == ("a", 4 + 3, 20)
    assert found.beginning == "hello there"


def test_a_line_may_have_the_public_name_of_the_model() -> None:
    fields = {k: getattr(REQUEST, k) for k in REQUEST.__slots__}
    named = JobRequest(**{**fields, "public_name": "Qwen/Qwen3-8B"})
    for name in ("qwen", "Qwen/Qwen3-8B"):
        found = check_request(line(body={"model": name}), named)
        assert isinstance(found, CheckedLine)
        assert found.body["model"] == name  # the engine answers under both
    found = check_request(line(body={"model": "Qwen/Qwen3-4B"}), named)
    assert isinstance(found, BadLine)
    assert found.reasons == (
        "body.model: must be the job's model 'qwen' or 'Qwen/Qwen3-8B'; got \"Qwen/Qwen3-4B\"",
    )
    assert reasons(line(body={"model": ""})) == ("body.model: must be the job's model 'qwen'; got \"\"",)


def test_images_count_and_answers_multiply() -> None:
    content = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]
    wide = JobRequest(**{**{k: getattr(REQUEST, k) for k in REQUEST.__slots__}, "limits": JobLimits()})
    body = {"messages": [{"role": "user", "content": content}], "n": 3}
    found = check_request(line(body=body), wide)
    assert isinstance(found, CheckedLine)
    assert (found.input_tokens, found.output_tokens) == (4 + 3 + wide.image_tokens, 60)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON in UTF-8"),
        (b"\xff\xfe{}", "not JSON in UTF-8"),
        (b'{"custom_id": NaN}', "not JSON in UTF-8: NaN is not a JSON value"),
        (b"[" * 100_000, "not JSON in UTF-8"),
        (b"[]", "must be an object with body, custom_id, method, url; got list"),
        (line(custom_id=""), "custom_id: must be a string of 1 to 512 characters"),
        (line(custom_id=7), "custom_id: must be a string of 1 to 512 characters; got 7"),
        (line(custom_id="a\nb"), "custom_id: must have only printable characters"),
        (line(method="GET"), 'method: must be POST; got "GET"'),
        (line(url="/v1/embeddings"), "url: must be the job's endpoint /v1/chat/completions"),
        (line(priority=1), "priority: not a field of a request"),
        (line(body={"model": "other"}), "body.model: must be the job's model 'qwen'; got \"other\""),
        (line(body={"stream": True}), "body.stream: a batch is not streamed"),
        (line(body={"n": 0}), "body.n: must be a whole number from 1 to 128; got 0"),
        (line(body={"max_tokens": "9"}), "body.max_tokens: must be a whole number"),
        (line(body={"max_tokens": True}), "body.max_tokens: must be a whole number"),
        (line(body={"messages": []}), "body.messages: must be a list of messages, not empty"),
        (line(body={"messages": 5}), "body.messages: must be a list of messages, not empty; got 5"),
        (line(body={"messages": [{"role": 1}]}), "body.messages[0]: must be an object with a role"),
        (
            line(body={"max_tokens": 999}),
            "about 7 input tokens and up to 999 of output; the maximum is 1,000",
        ),
    ],
)
def test_a_bad_line_says_what_is_wrong(content: bytes, reason: str) -> None:
    assert any(each.startswith(reason) for each in reasons(content)), reasons(content)


@pytest.mark.parametrize(
    "address", ["https://example.org/1.png", "s3://acme/pictures/1.png", "file:///etc/passwd"]
)
def test_engines_fetch_no_image(address: str) -> None:
    content = [{"type": "image_url", "image_url": {"url": address}}]
    [reason] = reasons(line(body={"messages": [{"role": "user", "content": content}]}))
    assert reason == (
        f"image {address!r}: must be a data: URL; for images in S3, use a template with imageFields"
    )


def test_all_reasons_are_given_at_once() -> None:
    assert (
        len(reasons(line(custom_id=None, method="PUT", url=3, body={"model": 1, "n": -1, "messages": ""})))
        == 6
    )


@given(JSON)
def test_no_line_of_json_breaks_the_check(value: Any) -> None:
    check_request(json.dumps(value).encode(), REQUEST)


@given(JSON, st.sampled_from(["custom_id", "body", "url", "method"]))
def test_no_field_of_json_breaks_the_check(value: Any, field: str) -> None:
    check_request(line(**{field: value} if field != "body" else {}), REQUEST)
    check_request(line(body={"messages": value}), REQUEST)
    check_request(line(body={"messages": [{"role": "user", "content": value}]}), REQUEST)


FIELDS = ["messages", "prompt", "input", "n", "max_tokens", "max_completion_tokens", "stream"]


@pytest.mark.parametrize("endpoint", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"])
@given(st.dictionaries(st.sampled_from(FIELDS), JSON | st.just(None) | st.integers(0, 9)))
def test_no_body_breaks_the_check_at_any_endpoint(endpoint: str, fields: dict[str, Any]) -> None:
    asked = {"prompt": "x", "input": "x", "messages": [{"role": "user", "content": "x"}]}
    body = {"model": REQUEST.model, **asked, **fields}
    found = check_request(line(url=endpoint, body=body), replace(REQUEST, endpoint=endpoint))
    if isinstance(found, CheckedLine):
        assert found.input_tokens >= 0
        assert found.output_tokens >= 0


def test_what_is_null_is_as_if_it_was_left_out() -> None:
    empty = {"max_tokens": None, "max_completion_tokens": None, "n": None}
    found = check_request(line(body=empty), replace(REQUEST, default_output_tokens=33))
    assert isinstance(found, CheckedLine)
    assert found.output_tokens == 33


@pytest.mark.parametrize(
    ("field", "endpoint"),
    [
        ("priority", "/v1/chat/completions"),
        ("kv_transfer_params", "/v1/chat/completions"),
        ("chat_template", "/v1/chat/completions"),
        ("input", "/v1/chat/completions"),
        ("messages", "/v1/embeddings"),
        ("tools", "/v1/completions"),
    ],
)
def test_a_field_that_is_not_of_the_endpoint_is_refused_with_those_that_are(
    field: str, endpoint: str
) -> None:
    request = replace(REQUEST, endpoint=endpoint)
    found = check_request(line(url=endpoint, body={field: {"a": 1}}), request)
    assert isinstance(found, BadLine)
    [reason] = [each for each in found.reasons if each.startswith(f"body.{field}: not a field")]
    assert reason.endswith(f"those are {', '.join(sorted(BODY_FIELDS[endpoint]))}")


@pytest.mark.parametrize("kind", ["video_url", "audio_url", "input_audio", "file", None])
def test_a_part_that_an_engine_would_fetch_is_refused(kind: object) -> None:
    content = [{"type": "text", "text": "what?"}, {"type": kind, "video_url": {"url": "https://example.org"}}]
    [reason] = reasons(line(body={"messages": [{"role": "user", "content": content}]}))
    assert reason.startswith("body.messages[0].content[1].type: must be one of image_url, refusal, text; got")


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": [1, 2, 3], "max_tokens": 5}, (3, 5)),
        ({"prompt": [[1, 2, 3], [4]], "max_tokens": 5}, (4, 10)),
        ({"prompt": ["four", "more"], "max_tokens": 5, "n": 2}, (2, 20)),
        ({"prompt": "four", "max_tokens": 5, "n": 1, "best_of": 4}, (1, 20)),
        ({"input": [[1, 2], [3]]}, (3, 0)),
        ({"messages": [{"role": "user", "content": "four"}], "tools": [{"a": "b" * 31}]}, (4 + 1 + 11, 7)),
        ({"messages": [{"role": "user", "content": "four", "name": "anna"}]}, (4 + 1 + 2, 7)),
    ],
)
def test_everything_that_an_engine_reads_or_writes_counts(
    body: dict[str, Any], tokens: tuple[int, int]
) -> None:
    assert (input_tokens(body, image_tokens=0), output_tokens(body, default=7)) == tokens
