"""What a client must get of the answers of scripted and counting models, whichever server is before them."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.engines.answers.scripted_weights import counted_words
from tests.local.targets.local.answers.answer_families import Family

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
