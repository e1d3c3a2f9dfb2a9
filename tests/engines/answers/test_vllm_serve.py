"""Answers of real vLLM in llm-d's way, `vllm serve` with the plan's parsers: what a client gets of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from inference_blueprints import catalog
from tests.engines.answers.scripted_weights import counted_words, write_counting_model, write_scripted_model
from tests.engines.answers.scripts import SCRIPTS
from tests.engines.answers.serving import serving

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

_COUNTING = "counting"
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "degrees": {"enum": [1, 2]}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def _parsers(name: str) -> list[str]:
    """Return the arguments for the parsers that the catalogue names for `vllm serve`."""
    model = catalog.model(SCRIPTS[name].entry)
    parsers = catalog.answer_formats()[str(model.answer_format)].parsers["vllm"]
    reasoning = ["--reasoning-parser", parsers.reasoning] if parsers.reasoning else []
    calls = (
        ["--tool-call-parser", parsers.tool_call, "--enable-auto-tool-choice"] if parsers.tool_call else []
    )
    return [*reasoning, *calls]


#: Families whose answers vLLM's own parsers can separate completely.
_SERVED = {
    name: family
    for name, family in SCRIPTS.items()
    if (not family.calls or "--tool-call-parser" in _parsers(name))
    and (not family.reasoning or "--reasoning-parser" in _parsers(name))
}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, openai.OpenAI]]:
    folder: Path = tmp_path_factory.mktemp("answers")
    for name, family in _SERVED.items():
        write_scripted_model(family.entry, folder / name, family.text)
    write_counting_model("Qwen/Qwen3-8B", folder / _COUNTING)
    arguments = {name: _parsers(name) for name in _SERVED} | {
        _COUNTING: ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    }
    with serving(folder, arguments) as opened:
        yield opened


def _question(name: str, **extra: Any) -> dict[str, Any]:
    asked = {"model": name, "messages": [{"role": "user", "content": "Weather in Paris?"}], "max_tokens": 200}
    return asked | ({"tools": _TOOLS} if name in _SERVED and _SERVED[name].calls else {}) | extra


def _reasoning(part: Any) -> str:
    """Return the reasoning of a message or a piece of one (`reasoning` in vLLM 0.31.0)."""
    return getattr(part, "reasoning_content", None) or getattr(part, "reasoning", None) or ""


@pytest.mark.parametrize("name", _SERVED)
def test_reasoning_and_tool_calls_are_separated(clients: dict[str, openai.OpenAI], name: str) -> None:
    family = _SERVED[name]
    [choice] = clients[name].chat.completions.create(**_question(name)).choices
    message = choice.message
    assert (message.content or "").strip() == family.content
    assert _reasoning(message).strip() == family.reasoning
    calls = tuple(
        (call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()
    )
    assert calls == family.calls
    assert choice.finish_reason == ("tool_calls" if family.calls else "stop")


@pytest.mark.parametrize("name", _SERVED)
def test_reasoning_and_tool_calls_are_separated_in_a_stream(
    clients: dict[str, openai.OpenAI], name: str
) -> None:
    family = _SERVED[name]
    chunks = list(clients[name].chat.completions.create(**_question(name), stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    deltas = [choice.delta for choice in choices]
    assert "".join(delta.content or "" for delta in deltas).strip() == family.content
    assert "".join(map(_reasoning, deltas)).strip() == family.reasoning
    calls = [call.function for delta in deltas for call in delta.tool_calls or ()]
    assert "".join(call.name or "" for call in calls) == "".join(name for name, _ in family.calls)
    if family.calls:
        assert json.loads("".join(call.arguments or "" for call in calls)) == family.calls[0][1]
    [finish] = [choice.finish_reason for choice in choices if choice.finish_reason]
    assert finish == ("tool_calls" if family.calls else "stop")


def test_a_client_sees_every_token_once(clients: dict[str, openai.OpenAI]) -> None:
    count = 300
    asked = _question(_COUNTING, max_tokens=count, stream=True, stream_options={"include_usage": True})
    chunks = list(clients[_COUNTING].chat.completions.create(**asked))
    written = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert written == counted_words(count)
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == count
    assert usage.total_tokens == usage.prompt_tokens + count


def test_an_answer_that_reaches_its_limit_says_so(clients: dict[str, openai.OpenAI]) -> None:
    [choice] = clients[_COUNTING].chat.completions.create(**_question(_COUNTING, max_tokens=3)).choices
    assert choice.finish_reason == "length"
    assert choice.message.content == counted_words(3)


def test_a_json_schema_is_kept(clients: dict[str, openai.OpenAI]) -> None:
    layout = {"type": "json_schema", "json_schema": {"name": "place", "schema": _SCHEMA, "strict": True}}
    [choice] = (
        clients[_COUNTING].chat.completions.create(**_question(_COUNTING, response_format=layout)).choices
    )
    answer = json.loads(str(choice.message.content))
    assert answer.keys() == {"city", "degrees"}
    assert answer["city"] in {"Paris", "Rome"}
    assert answer["degrees"] in {1, 2}


@pytest.mark.parametrize(
    ("status", "wrong"),
    [
        (400, {"messages": [{"role": "user", "content": " bado" * 3000}]}),
        (404, {"model": "unknown"}),
        (400, {"messages": "not a list"}),
        (400, {"temperature": -1}),
    ],
)
def test_a_wrong_request_is_refused(
    clients: dict[str, openai.OpenAI], status: int, wrong: dict[str, Any]
) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        clients[_COUNTING].chat.completions.create(**_question(_COUNTING) | wrong)
    assert raised.value.status_code == status


def test_malformed_json_is_refused(clients: dict[str, openai.OpenAI]) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        clients[_COUNTING].post(
            "/chat/completions",
            cast_to=object,
            options={"headers": {"Content-Type": "application/json"}},
            content=b'{"model": ',
        )
    assert raised.value.status_code == 400
