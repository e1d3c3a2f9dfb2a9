"""Answers in each family's own format, through Dynamo's real frontend with the parsers that the plan names.

A scripted engine writes the raw text. gpt-oss is left out: its parser downloads a vocabulary (see
``vocabulary_host`` in ``answer_formats.json``), and tests use no network.
"""

import copy
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml

from inference_blueprints import catalog, resources
from inference_blueprints.measurement.tokenizer.model_directory import write_model_directory
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.processes.free_ports import free_ports
from inference_blueprints.serving.command_line import command_line
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.targets.local.process_commands import environment, frontend_command

_READY_SECONDS = 60
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
_CALL = ("get_weather", {"city": "Paris"})


@dataclass(frozen=True)
class Family:
    """What a model writes, and what a client should get of it."""

    entry: str
    marks: tuple[str, ...]
    text: str
    content: str
    reasoning: str
    calls: tuple[tuple[str, dict[str, str]], ...]


#: Marks are single tokens of each family's tokenizer; their text is that of its chat template.
FAMILIES = {
    "qwen3": Family(
        "Qwen/Qwen3-8B",
        ("<think>", "</think>", "<tool_call>", "</tool_call>"),
        "<think>\nParis, then.\n</think>\n\nI look it up.\n<tool_call>\n"
        '{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
        "I look it up.",
        "Paris, then.",
        (_CALL,),
    ),
    "qwen3-coder": Family(
        "Qwen/Qwen3-Coder-480B-A35B-Instruct",
        ("<tool_call>", "</tool_call>"),
        "I look it up.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
        "</function>\n</tool_call>",
        "I look it up.",
        "",
        (_CALL,),
    ),
    "kimi-k2": Family(
        "moonshotai/Kimi-K2-Instruct",
        (
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
        ),
        "I look it up.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        "I look it up.",
        "",
        (_CALL,),
    ),
    "llama3": Family(
        "meta-llama/Llama-3.1-8B-Instruct",
        (),
        '{"name": "get_weather", "parameters": {"city": "Paris"}}',
        "",
        "",
        (_CALL,),
    ),
    "mistral": Family(
        "mistralai/Mistral-Nemo-Instruct-2407",
        ("[TOOL_CALLS]",),
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "abcdefghi"}]',
        "",
        "",
        (_CALL,),
    ),
    "deepseek-r1": Family(
        "deepseek-ai/DeepSeek-R1",
        ("<think>", "</think>"),
        # The prompt ends with the opening mark.
        "Paris, then.\n</think>\n\nIt is mild.",
        "It is mild.",
        "Paris, then.",
        (),
    ),
}


def blueprint_of(entry: str) -> Blueprint:
    text = (resources.blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    document = copy.deepcopy(yaml.safe_load(text))
    # Without the events of a cache, which the scripted engine does not have.
    document["spec"]["models"][0] |= {"weights": {"huggingFace": entry}, "routing": {"roundRobin": {}}}
    return Blueprint.model_validate(document)


def planned_arguments(entry: str) -> list[str]:
    """Return the parsers of the plan as Dynamo's own arguments, without the engine's."""
    [resolved] = resolve(blueprint_of(entry), 0, 0)
    arguments = STACKS["dynamo"].parser_arguments(resolved)
    return list(command_line({name: value for name, value in arguments.items() if name.startswith("dyn-")}))


def scripted(name: str, family: Family, directory: Path) -> dict[str, Any]:
    """Write a model's directory with a tokenizer that has its marks, and return its entry of the script."""
    write_model_directory(catalog.model(family.entry), directory)
    path = directory / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    first = 1 + max(tokenizer["model"]["vocab"].values())
    marks = {mark: first + index for index, mark in enumerate(family.marks)}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    tokenizer["added_tokens"] += [{"id": each, "content": mark, **plain} for mark, each in marks.items()]
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    # The tokens after the special ones are the bytes, in their order.
    first_byte = tokenizer["model"]["vocab"]["<|im_end|>"] + 1
    parts = re.split("(" + "|".join(map(re.escape, marks)) + ")", family.text) if marks else [family.text]
    tokens: list[int] = []
    for part in parts:
        tokens += [marks[part]] if part in marks else [first_byte + byte for byte in part.encode()]
    return {
        "name": name,
        "directory": str(directory),
        "arguments": planned_arguments(family.entry),
        "tokens": tokens,
    }


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    folder: Path = tmp_path_factory.mktemp("parsers")
    script = [scripted(name, family, folder / name) for name, family in FAMILIES.items()]
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    frontend = build_plan(blueprint_of("Qwen/Qwen3-8B")).models[0].deployments[0].processes[0]
    variables = environment(frontend.environment, folder)
    [port] = free_ports(1)
    engine = [sys.executable, Path(__file__).parent / "scripted_engine.py", folder / "script.json"]
    with ProcessGroup() as processes:
        processes.start(
            "frontend", frontend_command(frontend, port), environment=variables, log_path=folder / "f.log"
        )
        processes.start("engine", engine, environment=variables, log_path=folder / "engine.log")
        address = f"http://127.0.0.1:{port}/v1"
        with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as opened:
            wait_for_models(opened, processes)
            yield opened
            processes.check()


def wait_for_models(client: openai.OpenAI, processes: ProcessGroup) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        processes.check()
        try:
            if len(client.models.list().data) == len(FAMILIES):
                return
        except openai.APIError as error:
            if time.monotonic() > deadline:
                raise AssertionError("the frontend does not answer") from error
        assert time.monotonic() < deadline, "not every model is listed"
        time.sleep(0.05)


def question(name: str) -> dict[str, Any]:
    return {"model": name, "messages": [{"role": "user", "content": "Weather in Paris?"}], "max_tokens": 900}


def calls_of(calls: Any) -> tuple[tuple[str, dict[str, str]], ...]:
    return tuple((call.function.name, json.loads(call.function.arguments)) for call in calls or ())


@pytest.mark.parametrize("name", FAMILIES)
def test_reasoning_and_tool_calls_are_separated(client: openai.OpenAI, name: str) -> None:
    family = FAMILIES[name]
    [choice] = client.chat.completions.create(**question(name), tools=_TOOLS).choices
    message = choice.message
    assert (message.content or "").strip() == family.content
    assert (getattr(message, "reasoning_content", None) or "").strip() == family.reasoning
    assert calls_of(message.tool_calls) == family.calls
    assert choice.finish_reason == ("tool_calls" if family.calls else "stop")


@pytest.mark.parametrize("name", FAMILIES)
def test_reasoning_and_tool_calls_are_separated_in_a_stream(client: openai.OpenAI, name: str) -> None:
    family = FAMILIES[name]
    stream = client.chat.completions.create(**question(name), tools=_TOOLS, stream=True)
    deltas = [choice.delta for chunk in stream for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas).strip() == family.content
    thoughts = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thoughts).strip() == family.reasoning
    assert calls_of([call for delta in deltas for call in delta.tool_calls or ()]) == family.calls


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.reasoning])
def test_reasoning_is_separated_without_tools(client: openai.OpenAI, name: str) -> None:
    [choice] = client.chat.completions.create(**question(name)).choices
    assert (getattr(choice.message, "reasoning_content", None) or "").strip() == FAMILIES[name].reasoning
