"""What the door reads and writes so that no answer and no prompt passes its reservation, with the real Envoy.

`docs/front-door-budgets.md` has the fields of the engines, and why each passes no bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from inference_contracts import door_headers
from tests.unit.render.front_door.door_process import CHAT, Door, admitted, running_door

pytestmark = pytest.mark.clock

_USAGE = {"include_usage": True, "continuous_usage_stats": True}
_COMPLETIONS, _RESPONSES, _MESSAGES = "/v1/completions", "/v1/responses", "/v1/messages"


def _nested(depth: int) -> list[Any]:
    found: list[Any] = [1]
    for _ in range(depth - 1):
        found = [found]
    return found


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("bounds")) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "body", "maximum"),
    [
        (CHAT, {"max_tokens": 5, "max_completion_tokens": 70}, "70"),
        (CHAT, {"max_tokens": 70, "max_completion_tokens": 5}, "70"),
        (CHAT, {"max_tokens": 5}, "5"),
        (CHAT, {"max_tokens": None}, None),
        (CHAT, {"max_completion_tokens": 5, "max_tokens": None}, "5"),
        (CHAT, {"max_tokens": 5, "min_tokens": 3}, "5"),
        (_COMPLETIONS, {"max_tokens": 5}, "5"),
        (_RESPONSES, {"max_output_tokens": 5}, "5"),
        (_MESSAGES, {"max_tokens": 5}, "5"),
        # Fields that the path does not have bound nothing there.
        (CHAT, {"max_output_tokens": 5}, None),
        (_COMPLETIONS, {"max_completion_tokens": 5}, None),
        (_COMPLETIONS, {"max_output_tokens": 5}, None),
        (_RESPONSES, {"max_tokens": 5, "max_completion_tokens": 5}, None),
        (_MESSAGES, {"max_completion_tokens": 5}, None),
        ("/v1/embeddings", {"max_tokens": 5}, None),
        # SGLang and Dynamo take 0 for no maximum.
        (CHAT, {"max_completion_tokens": 0, "max_tokens": 5}, "0"),
        (_COMPLETIONS, {"max_tokens": 0}, "0"),
        # TensorRT-LLM takes the first of the two that is there, also if it is null.
        (CHAT, {"max_completion_tokens": None, "max_tokens": 5}, "0"),
        # llama.cpp takes n_predict before all others, and others do not know it.
        (CHAT, {"max_tokens": 5, "n_predict": -1}, "0"),
        (CHAT, {"n_predict": 5}, "0"),
        # A maximum below it would be refused.
        (CHAT, {"min_tokens": 3}, "0"),
        (CHAT, {"min_tokens": 0}, None),
    ],
)
def test_only_what_engines_take_for_a_maximum_counts(
    door: Door, path: str, body: dict[str, Any], maximum: str | None
) -> None:
    """Red if a field that an engine does not read lowers what is reserved."""
    assert door.told({"model": "m", **body}, path).get("max-tokens") == maximum


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (CHAT, {}, {"max_completion_tokens": 33}),
        (CHAT, {"max_tokens": None}, {"max_tokens": None, "max_completion_tokens": 33}),
        (CHAT, {"max_completion_tokens": None}, {"max_completion_tokens": 33}),
        (_COMPLETIONS, {}, {"max_tokens": 33}),
        (_COMPLETIONS, {"max_tokens": None, "z": 1}, {"max_tokens": 33, "z": 1}),
        (_RESPONSES, {"max_tokens": 5}, {"max_tokens": 5, "max_output_tokens": 33}),
        (_MESSAGES, {}, {"max_tokens": 33}),
        ("/v1/embeddings", {}, {}),
    ],
)
def test_the_maximum_of_the_policy_is_written_into_the_body(
    door: Door, path: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Red if an answer may be longer than what is reserved for it: the engine gets no maximum."""
    door.policy.answer = lambda handler, seen: admitted(handler, seen, {door_headers.MAXIMUM: "33"})
    try:
        answer = door.ask("POST", path, {"model": "m", "stream": True, **before})
    finally:
        door.policy.answer = admitted
    assert answer.headers[door_headers.MAXIMUM] == "33"
    sent = door.engine.seen[-1]
    found = json.loads(sent.body)
    options = {"stream_options": _USAGE} if path in {CHAT, _COMPLETIONS} else {}
    assert found == {"model": "served-model", "stream": True, **options, **after}
    assert sent.headers["content-length"] == str(len(sent.body))
    assert door_headers.MAXIMUM not in sent.headers


@pytest.mark.parametrize(
    "body",
    [
        {"previous_response_id": "r"},
        {"conversation": {"id": "c"}},
        {"session_params": {"id": "s"}},
        {"chat_template": "{% for i in range(9999) %}x{% endfor %}"},
        {"chat_template_kwargs": {"chat_template": "x"}},
        {"mm_processor_kwargs": {"max_pixels": 10**9}},
        {"media_io_kwargs": {"video": {"num_frames": 9999}}},
        {"max_dynamic_patch": 99},
        {"prompt_embeds": "AAAA"},
        {"messages": [{"content": [{"type": "video_url", "video_url": {"url": "https://a/film"}}]}]},
        {"messages": [{"content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}]},
        # Indented by four, [1] at a depth of 120 is five tokens per byte (cl100k_base).
        {"tools": [{"type": "function", "function": {"parameters": _nested(37)}}]},
        {"functions": [{"name": "f", "parameters": _nested(38)}]},
    ],
)
def test_a_prompt_whose_length_only_the_engine_knows_has_the_context_as_its_bound(
    door: Door, body: dict[str, Any]
) -> None:
    """Red if a few bytes make a long prompt, and are reserved as a few tokens."""
    assert door.told({"model": "m", **body})["stored"] == "true"


def test_a_template_may_write_tools_longer_than_they_are_and_more_answers_have_other_names(
    door: Door,
) -> None:
    """Qwen3-Coder's template writes tags around each parameter, others indent: red if a byte is one token."""
    parameters = {"a": {}, "b": {}, "c": _nested(35)}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    body = {"model": "m", "tools": tools, "chat_template_kwargs": {"enable_thinking": False}}
    facts = door.told(body)
    assert facts["bytes"] == str(len(json.dumps(body)) + 3 * len(json.dumps(tools)))
    assert "stored" not in facts
    assert door.told({"model": "m", "n": 2, "n_cmpl": 7})["n"] == "7"
    assert door.told({"model": "m", "prompt_embeds": ["AA", "BB"]}, _COMPLETIONS)["n"] == "2"
