"""What a client must get of the answers of scripted and counting models, whichever server is before them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import openai
import pytest

from tests.engines.answers.scripted_weights import counted_words
from tests.local.serving.answers.answer_families import Family


def _place(*cities: str) -> dict[str, Any]:
    """Return the schema of arguments with one of some cities: each answer that matches it is short."""
    return {
        "type": "object",
        "properties": {"city": {"enum": cities}},
        "required": ["city"],
        "additionalProperties": False,
    }


_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
#: The second of two tools, because a server that ignores the choice might take the first.
_NAMED = "get_time"
_CHOICES = [
    {"type": "function", "function": {"name": name, "parameters": parameters, "strict": True}}
    for name, parameters in (("get_weather", _place("Paris", "Rome")), (_NAMED, _place("Oslo", "Lima")))
]
#: Values of `tool_choice` that force a call, with the names that it may have.
FORCED: Mapping[str, tuple[Any, set[str]]] = {
    "required": ("required", {"get_weather", _NAMED}),
    "named": ({"type": "function", "function": {"name": _NAMED}}, {_NAMED}),
}
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "degrees": {"enum": [1, 2]}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
#: Requests that must be refused, with the status.
WRONG: tuple[tuple[int, dict[str, Any]], ...] = (
    (400, {"messages": [{"role": "user", "content": " bado" * 20_000}]}),
    (404, {"model": "unknown"}),
    (400, {"messages": "not a list"}),
    (400, {"temperature": -1}),
)


def _question(name: str, family: Family | None = None, **extra: Any) -> dict[str, Any]:
    asked = {"model": name, "messages": [{"role": "user", "content": "Weather in Paris?"}], "max_tokens": 200}
    return asked | ({"tools": _TOOLS} if family and family.calls else {}) | extra


def _reasoning(part: Any) -> str:
    """Return the reasoning of a message or a piece of one: Dynamo and vLLM name it differently."""
    return getattr(part, "reasoning_content", None) or getattr(part, "reasoning", None) or ""


def _finish(family: Family) -> str:
    return "tool_calls" if family.calls else "stop"


def separated(client: openai.OpenAI, name: str, family: Family) -> None:
    """Reasoning, text and tool calls of an answer are apart."""
    [choice] = client.chat.completions.create(**_question(name, family)).choices
    message = choice.message
    assert (message.content or "").strip() == family.content
    assert _reasoning(message).strip() == family.reasoning
    calls = message.tool_calls or ()
    assert tuple((each.function.name, json.loads(each.function.arguments)) for each in calls) == family.calls
    assert choice.finish_reason == _finish(family)


def separated_in_a_stream(client: openai.OpenAI, name: str, family: Family) -> None:
    """Reasoning, text and tool calls of a stream are apart."""
    chunks = list(client.chat.completions.create(**_question(name, family), stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    deltas = [choice.delta for choice in choices]
    assert "".join(delta.content or "" for delta in deltas).strip() == family.content
    assert "".join(map(_reasoning, deltas)).strip() == family.reasoning
    calls = [call.function for delta in deltas for call in delta.tool_calls or ()]
    assert "".join(call.name or "" for call in calls) == "".join(called for called, _ in family.calls)
    written = "".join(call.arguments or "" for call in calls)
    assert [json.loads(written)] == [given for _, given in family.calls] if family.calls else not written
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == [_finish(family)]


def counted(client: openai.OpenAI, name: str, count: int) -> None:
    """A client sees every token once, and the usage says how many."""
    asked = _question(name, max_tokens=count, stream=True, stream_options={"include_usage": True})
    chunks = list(client.chat.completions.create(**asked))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == counted_words(count)
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["length"]
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == count
    assert usage.total_tokens == usage.prompt_tokens + count


def keeps_a_schema(client: openai.OpenAI, name: str) -> None:
    """An answer matches the JSON Schema of its request, which the weights alone would not write.

    A schema counts once the model has ended its reasoning, so the request switches reasoning off.
    """
    layout = {"type": "json_schema", "json_schema": {"name": "place", "schema": _SCHEMA, "strict": True}}
    direct = {"chat_template_kwargs": {"enable_thinking": False}}
    asked = _question(name, response_format=layout, extra_body=direct)
    [choice] = client.chat.completions.create(**asked).choices
    answer = json.loads(str(choice.message.content))
    assert answer.keys() == {"city", "degrees"}
    assert answer["city"] in {"Paris", "Rome"}
    assert answer["degrees"] in {1, 2}


def _forced(name: str, forced: str) -> dict[str, Any]:
    direct = {"chat_template_kwargs": {"enable_thinking": False}}
    choice, _ = FORCED[forced]
    asked = _question(name, tools=_CHOICES, tool_choice=choice, extra_body=direct)
    return asked | {"parallel_tool_calls": False, "temperature": 0}


def _is_allowed(called: str, arguments: str, forced: str) -> bool:
    _, names = FORCED[forced]
    cities = {"Oslo", "Lima"} if called == _NAMED else {"Paris", "Rome"}
    written = json.loads(arguments)
    return called in names and written.keys() == {"city"} and written["city"] in cities


def calls_a_forced_tool(client: openai.OpenAI, name: str, forced: str, finish: str) -> None:
    """A forced tool is called, and there is nothing else in the answer."""
    [choice] = client.chat.completions.create(**_forced(name, forced)).choices
    calls = [call.function for call in choice.message.tool_calls or ()]
    assert calls, choice
    assert all(_is_allowed(call.name, call.arguments, forced) for call in calls), calls
    assert not (choice.message.content or "").strip(), choice
    assert choice.finish_reason == finish


def calls_a_forced_tool_in_a_stream(client: openai.OpenAI, name: str, forced: str, finish: str) -> None:
    """A forced tool is called in a stream, and there is nothing else in it."""
    chunks = list(client.chat.completions.create(**_forced(name, forced), stream=True))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    calls: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls or ()):
        name_and_arguments = calls.setdefault(call.index, ["", ""])
        name_and_arguments[0] += call.function.name or ""
        name_and_arguments[1] += call.function.arguments or ""
    assert calls, chunks
    assert all(_is_allowed(called, arguments, forced) for called, arguments in calls.values()), calls
    assert not "".join(delta.content or "" for delta in deltas).strip()
    ends = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert ends == [finish]


def loses_a_spelled_call_in_a_stream(client: openai.OpenAI, name: str) -> None:
    """A stream has a call as text if its marks are not tokens of their own; the whole answer has the call.

    Once it has seen a token's number, ``_process_lex_tokens`` takes the text of a mark as content
    (``vllm/parser/engine/streaming_parser_engine.py``, 0.31.0; github.com/vllm-project/vllm/issues/58315).
    When this fails because the stream has the call, docs/serving.md no longer needs to warn.
    """
    asked = _forced(name, "required")
    [choice] = client.chat.completions.create(**asked).choices
    assert [call.function.name in FORCED["required"][1] for call in choice.message.tool_calls or ()] == [True]
    chunks = list(client.chat.completions.create(**asked, stream=True))
    deltas = [each.delta for chunk in chunks for each in chunk.choices]
    assert not [call for delta in deltas for call in delta.tool_calls or ()]
    assert "<tool_call>" in "".join(delta.content or "" for delta in deltas)


def marks_a_call_that_is_cut(client: openai.OpenAI, name: str) -> None:
    """A client knows by the finish reason that `max_tokens` cut the call, whatever arguments are in it."""
    [choice] = client.chat.completions.create(**_forced(name, "named") | {"max_tokens": 12}).choices
    assert choice.finish_reason == "length", choice


def refused(client: openai.OpenAI, name: str, status: int, wrong: dict[str, Any]) -> None:
    """A wrong request gets the status of its error."""
    with pytest.raises(openai.APIStatusError) as raised:
        client.chat.completions.create(**_question(name) | wrong)
    assert raised.value.status_code == status


def refuses_malformed_json(client: openai.OpenAI) -> None:
    """A body that is not JSON is the client's error."""
    with pytest.raises(openai.APIStatusError) as raised:
        client.post(
            "/chat/completions",
            cast_to=object,
            options={"headers": {"Content-Type": "application/json"}},
            content=b'{"model": ',
        )
    assert raised.value.status_code == 400
