"""The official clients, and each family's own format, through Dynamo's real frontend with the plan's parsers.

A scripted engine writes the raw text.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionFunctionToolParam

from inference_blueprints import tools
from inference_blueprints.resources import root
from tests.local.serving.answers.answer_families import FAMILIES, Family
from tests.local.serving.answers.scripted_models import ECHO

_PROGRAM = Path(__file__).with_name("chat_client.mjs")
_TOOLS: list[ChatCompletionFunctionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as opened:
        yield opened


@pytest.fixture(scope="module")
def seen_in_node(address: str) -> dict[str, Any]:
    """What a program with the official Node.js client saw: one run for all models."""
    ran = subprocess.run(
        [str(tools.node()), str(_PROGRAM), address, json.dumps(_TOOLS), ECHO, *FAMILIES],
        cwd=root(),
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    seen: dict[str, Any] = json.loads(ran.stdout)
    return seen


def question(name: str) -> dict[str, Any]:
    return {"model": name, "messages": [{"role": "user", "content": "Weather in Paris?"}], "max_tokens": 900}


def calls_of(calls: Any) -> tuple[tuple[str, dict[str, str]], ...]:
    return tuple((call.function.name, json.loads(call.function.arguments)) for call in calls or ())


def finish_reason(family: Family) -> str:
    return "tool_calls" if family.calls else "stop"


@pytest.mark.parametrize("name", FAMILIES)
def test_reasoning_and_tool_calls_are_separated(client: openai.OpenAI, name: str) -> None:
    family = FAMILIES[name]
    [choice] = client.chat.completions.create(**question(name), tools=_TOOLS).choices
    message = choice.message
    assert (message.content or "").strip() == family.content
    assert (getattr(message, "reasoning_content", None) or "").strip() == family.reasoning
    assert calls_of(message.tool_calls) == family.calls
    assert choice.finish_reason == finish_reason(family)


@pytest.mark.parametrize("name", FAMILIES)
def test_reasoning_and_tool_calls_are_separated_in_a_stream(client: openai.OpenAI, name: str) -> None:
    family = FAMILIES[name]
    stream = client.chat.completions.create(**question(name), tools=_TOOLS, stream=True)
    deltas = [choice.delta for chunk in stream for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas).strip() == family.content
    thoughts = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thoughts).strip() == family.reasoning
    assert calls_of([call for delta in deltas for call in delta.tool_calls or ()]) == family.calls


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.calls])
def test_the_clients_own_stream_helper_assembles_tool_calls(client: openai.OpenAI, name: str) -> None:
    """It joins the pieces of a call by index, and fails without the fields that it expects."""
    family = FAMILIES[name]
    with client.chat.completions.stream(**question(name), tools=_TOOLS) as stream:
        [choice] = stream.get_final_completion().choices
    assert calls_of(choice.message.tool_calls) == family.calls
    assert choice.finish_reason == finish_reason(family)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.reasoning])
def test_reasoning_is_separated_without_tools(client: openai.OpenAI, name: str) -> None:
    [choice] = client.chat.completions.create(**question(name)).choices
    assert (getattr(choice.message, "reasoning_content", None) or "").strip() == FAMILIES[name].reasoning


@pytest.mark.parametrize("way", ["whole", "streamed", "helper"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_node_client_sees_the_same(seen_in_node: dict[str, Any], name: str, way: str) -> None:
    family, seen = FAMILIES[name], seen_in_node["models"][name][way]
    assert seen["content"].strip() == family.content
    assert seen["reasoning"].strip() == family.reasoning
    assert tuple((each["name"], json.loads(each["arguments"])) for each in seen["calls"]) == family.calls
    assert all(each["id"] for each in seen["calls"])
    assert seen["finish"] == finish_reason(family)


def guided(choice: Any) -> dict[str, Any]:
    """Return the constraint on the answer in the request that reached the engine."""
    constraint: dict[str, Any] = json.loads(choice.message.content)["sampling_options"]["guided_decoding"]
    return constraint


def test_a_json_schema_reaches_the_engine(client: openai.OpenAI) -> None:
    place = {"name": "place", "schema": _SCHEMA, "strict": True}
    asked = question(ECHO) | {"response_format": {"type": "json_schema", "json_schema": place}}
    [choice] = client.chat.completions.create(**asked).choices
    assert guided(choice)["json"] == _SCHEMA


def test_the_node_clients_json_schema_reaches_the_engine(seen_in_node: dict[str, Any]) -> None:
    received = json.loads(seen_in_node["echo"])
    assert received["sampling_options"]["guided_decoding"]["json"]["required"] == ["city"]


def test_a_required_tool_is_a_constraint_at_the_engine(client: openai.OpenAI) -> None:
    asked = question(ECHO) | {"tools": _TOOLS, "tool_choice": "required"}
    [choice] = client.chat.completions.create(**asked).choices
    assert "get_weather" in json.dumps(guided(choice))
