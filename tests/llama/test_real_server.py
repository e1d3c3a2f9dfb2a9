"""The real llama-server takes the plan's arguments, and answers as when it is run by hand."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inference_local.serving.llama_cpp.model_file import TinyModel
from tests.llama.served import SECONDS, answer, planned_arguments, serving, words

pytestmark = pytest.mark.llama

MODELS = {"qwen2": TinyModel(4096), "llama": TinyModel(2048, "llama", 3, 128, 8, 4, 256, 11)}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "paint",
            "parameters": {
                "type": "object",
                "properties": {
                    "colour": {"enum": ["red", "blue"]},
                    "why": {"type": "string", "maxLength": 20},
                    "coats": {"type": "integer", "minimum": 1, "maximum": 3},
                },
                "required": ["colour", "why", "coats"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "wait",
            "parameters": {
                "type": "object",
                "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["days"],
                "additionalProperties": False,
            },
        },
    },
]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Path:
    return MODELS[request.param].file(print)


def test_the_plan_s_server_answers_as_one_run_by_hand(model: Path) -> None:
    """It turns red if an argument of the plan changes what the model answers."""
    with serving(planned_arguments(model)) as (url, _):
        planned = words(answer(url, max_tokens=24))
    with serving(["--model", str(model), "--host", "127.0.0.1"]) as (url, _):
        assert words(answer(url, max_tokens=24)) == planned


def test_it_streams_keeps_to_a_schema_and_reports_metrics(model: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    with serving(planned_arguments(model)) as (url, _):
        events = answer(url, stream=True, max_tokens=5, ignore_eos=True).split("\n\n")
        assert "[DONE]" in events[-2]
        assert len(events) > 5
        assert json.loads(words(answer(url, response_format=form)))["colour"] in ("red", "blue")
        with urllib.request.urlopen(f"{url}/metrics", timeout=SECONDS) as page:  # noqa: S310
            metrics = page.read().decode()
    assert all(f"\nllamacpp:{name} " in metrics for name in ("requests_processing", "requests_deferred"))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_required_tool_is_called_with_arguments_of_its_schema(streamed: bool) -> None:  # noqa: FBT001 -- a case
    """It turns red if the model's template has no tools: the server then ignores 'tool_choice'."""
    wanted = {
        "tools": TOOLS,
        "tool_choice": "required",
        "max_tokens": 400,
        "stream": streamed,
    }
    with serving(planned_arguments(MODELS["qwen2"].file(print))) as (url, _):
        text = answer(url, **wanted)
    name, arguments, reason = called(text) if streamed else whole_call(text)
    assert reason == "tool_calls"
    [schema] = [tool["function"]["parameters"] for tool in TOOLS if tool["function"]["name"] == name]
    jsonschema.validate(json.loads(arguments), schema)


def whole_call(text: str) -> tuple[str, str, str]:
    [choice] = json.loads(text)["choices"]
    [call] = choice["message"]["tool_calls"]
    return call["function"]["name"], call["function"]["arguments"], choice["finish_reason"]


def called(text: str) -> tuple[str, str, str]:
    """Put the parts of a streamed call together."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    parts = [call["function"] for each in choices for call in each["delta"].get("tool_calls", ())]
    names = [part["name"] for part in parts if "name" in part]
    assert len(names) == 1
    return names[0], "".join(part.get("arguments", "") for part in parts), choices[-1]["finish_reason"]


def test_sigterm_ends_the_server_at_once() -> None:
    """The plan waits before it sends the signal, because the server would cut answers."""
    with serving(planned_arguments(MODELS["qwen2"].file(print))) as (_, process):
        process.terminate()
        assert process.wait(timeout=SECONDS) == 0
