"""Parsers of answers: which ones a model gets, how a user sets others, and which names are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

RECIPES: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("recipe_parsers.json").read_text(encoding="utf-8")
)["models"]
#: One class of vLLM 0.31.0 (``tool_parsers/__init__.py``).
SAME_PARSERS = {"qwen3_xml": "qwen3_coder"}
#: What a model has instead of its recipe's parser, by the name of the recipe.
OTHERWISE: Mapping[str, tuple[str, str | None, str]] = {
    "Qwen3-235B-A22B-Instruct-2507": (
        "reasoning",
        "qwen3",
        "the recipe is of the Instruct models, the entries are of those that think",
    ),
    "Qwen3-VL-235B-A22B-Instruct": ("tool_call", "hermes", "Dynamo's documentation, Qwen3-Instruct"),
    "DeepSeek-V3": ("reasoning", None, "the model does not think; its template has no switch"),
    "DeepSeek-V3.2": ("tool_call", None, "only with the tokenizer mode deepseek_v32"),
    "Llama-3.1-8B-Instruct": ("tool_call", "llama3_json", "vLLM's documentation, Tool Calling"),
    "Llama-3.3-70B-Instruct": ("tool_call", "llama3_json", "vLLM's documentation, Tool Calling"),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (
        "reasoning",
        "nemotron_v3",
        "nano_v3 is a plugin that the recipe downloads; the release registers it by this name",
    ),
    "gpt-oss-120b": ("reasoning", "openai_gptoss", "vLLM sets it itself (models/config.py)"),
    "gpt-oss-20b": ("reasoning", "openai_gptoss", "vLLM sets it itself (models/config.py)"),
}

GPT_OSS = {"huggingFace": "openai/gpt-oss-20b", "revision": "main"}
#: The flag with the names of a program's parsers, by program, engine and kind.
FLAGS = {
    ("dynamo", "reasoning"): catalog.engine("vllm").flags["--dyn-reasoning-parser"],
    ("dynamo", "tool_call"): catalog.engine("vllm").flags["--dyn-tool-call-parser"],
    ("vllm", "reasoning"): catalog.engine("vllm").flags["--reasoning-parser"],
    ("vllm", "tool_call"): catalog.engine("vllm").server_flags["--tool-call-parser"],
    ("sglang", "reasoning"): catalog.engine("sglang").flags["--reasoning-parser"],
    ("sglang", "tool_call"): catalog.engine("sglang").flags["--tool-call-parser"],
}


def parsers_of(blueprint: Blueprint) -> dict[str, object]:
    [resolved] = resolve(blueprint, 0, 0)
    return dict(STACKS[resolved.model.stack.chosen].parser_arguments(resolved))


def messages(blueprint: Blueprint) -> list[str]:
    return [finding.message for finding in serving_findings(blueprint) if finding.severity == "error"]


@pytest.mark.parametrize("name", sorted(catalog.answer_formats()))
def test_every_parser_of_a_format_is_one_of_the_release(name: str) -> None:
    for program, names in catalog.answer_formats()[name].parsers.items():
        for kind, parser in (("reasoning", names.reasoning), ("tool_call", names.tool_call)):
            assert parser is None or parser in FLAGS[program, kind].choices


@pytest.mark.parametrize("name", RECIPES)
def test_vllm_s_parsers_are_those_of_the_model_s_recipe(name: str) -> None:
    """Tool calls that need a chat template, which the model does not bring, have no parser by default."""
    recipe = RECIPES[name]
    kind, other, _ = OTHERWISE.get(Path(recipe["recipe"]).stem, ("", None, ""))
    expected = {each: SAME_PARSERS.get(recipe[each], recipe[each]) for each in ("reasoning", "tool_call")}
    if recipe["template"]:
        expected["tool_call"] = None
    if kind:
        assert expected[kind] != other  # else the exception is of no use
        expected[kind] = other
    names = catalog.answer_formats()[str(catalog.model(name).answer_format)].parsers["vllm"]
    found = {"reasoning": names.reasoning, "tool_call": names.tool_call}
    assert {each: SAME_PARSERS.get(str(found[each]), found[each]) for each in found} == expected


def test_every_format_of_a_model_is_in_the_catalogue() -> None:
    named = {model.answer_format for model in catalog.models().values()} - {None}
    assert named == catalog.answer_formats().keys()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {},
            {
                "dyn-reasoning-parser": "gpt_oss",
                "dyn-tool-call-parser": "harmony",
                "reasoning-parser": "openai_gptoss",
            },
        ),
        (
            {"engine": {"sglang": {}}},
            {
                "dyn-reasoning-parser": "gpt_oss",
                "dyn-tool-call-parser": "harmony",
                "reasoning-parser": "gpt-oss",
            },
        ),
        (
            {"engine": {"tensorrtLlm": {}}, "instance_types": ["g7e.2xlarge"]},
            {"dyn-reasoning-parser": "gpt_oss", "dyn-tool-call-parser": "harmony"},
        ),
        (
            {"stack": {"llmD": {}}},
            {"reasoning-parser": "openai_gptoss", "tool-call-parser": "openai"},
        ),
        ({"parsers": {"reasoning": "none", "toolCall": "none"}}, {}),
        (
            {"parsers": {"reasoning": "basic"}},
            {"dyn-reasoning-parser": "basic", "dyn-tool-call-parser": "harmony"},
        ),
    ],
)
def test_parsers_by_stack_and_engine(
    make_blueprint: Make, changes: dict[str, object], expected: dict[str, object]
) -> None:
    blueprint = make_blueprint(weights=GPT_OSS, **changes)
    assert parsers_of(blueprint) == expected
    assert messages(blueprint) == []


def test_llm_d_lets_the_model_choose_a_tool(make_blueprint: Make) -> None:
    """vLLM answers 400 to a request with tools if the switch is missing."""
    workers = [
        build_plan(make_blueprint(stack={"llmD": {}}, **changes))
        .models[0]
        .deployments[0]
        .workers[0]
        .arguments
        for changes in ({}, {"parsers": {"toolCall": "none"}})
    ]
    assert ["--enable-auto-tool-choice" in arguments for arguments in workers] == [True, False]


def test_a_user_s_argument_replaces_the_catalogue_s_parser(make_blueprint: Make) -> None:
    blueprint = make_blueprint(engine={"vllm": {"args": {"dyn-tool-call-parser": "qwen3_coder"}}})
    [worker] = build_plan(blueprint).models[0].deployments[0].workers
    assert worker.arguments.count("--dyn-tool-call-parser") == 1
    assert "qwen3_coder" in worker.arguments
    assert "hermes" not in worker.arguments
    assert messages(blueprint) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parsers": {"toolCall": "hermse"}},
            "got 'hermse', which is not a parser of 'dyn-tool-call-parser'; did you mean 'hermes'?",
        ),
        (
            {"parsers": {"toolCall": "openai"}},
            "got 'openai', which is not a parser of 'dyn-tool-call-parser'",
        ),
        (
            {"stack": {"llmD": {}}, "parsers": {"toolCall": "harmony"}},
            "got 'harmony', which is not a parser of 'tool-call-parser'",
        ),
        (
            {"engine": {"vllm": {"args": {"dyn-reasoning-parser": "qwen"}}}},
            "got 'qwen', allowed are basic, ",
        ),
        (
            {
                "parsers": {"reasoning": "basic"},
                "engine": {"vllm": {"args": {"dyn-reasoning-parser": "qwen3"}}},
            },
            "got 'basic', and the engine argument 'dyn-reasoning-parser' too; remove one of them",
        ),
        (
            {"stack": {"llmD": {}}, "engine": {"vllm": {"args": {"dyn-tool-call-parser": "hermes"}}}},
            "got 'dyn-tool-call-parser', an argument of Dynamo's workers",
        ),
        (
            {"engine": {"vllm": {"args": {"tool-call-parser": "hermes"}}}},
            "got 'tool-call-parser', an argument of the server of vllm",
        ),
    ],
)
def test_a_parser_that_the_release_does_not_have_is_refused(
    make_blueprint: Make, changes: dict[str, object], message: str
) -> None:
    [found] = messages(make_blueprint(**changes))
    assert found.startswith(message)


@pytest.mark.parametrize(
    "arguments",
    [
        {
            "chat-template": "/templates/tools.jinja",
            "default-chat-template-kwargs": '{"enable_thinking": false}',
        },
        {"tool-call-parser": "qwen3_xml", "reasoning-parser": "deepseek_r1"},
        {"enable-auto-tool-choice": False, "sse-keep-alive-interval": 15},
    ],
)
def test_flags_of_vllm_s_server_are_known_on_llm_d(
    make_blueprint: Make, arguments: dict[str, object]
) -> None:
    blueprint = make_blueprint(stack={"llmD": {}}, engine={"vllm": {"args": arguments}})
    assert messages(blueprint) == []
    rendered = build_plan(blueprint).models[0].deployments[0].workers[0].arguments
    negated = {f"--no-{name}" for name, value in arguments.items() if value is False}
    assert {f"--{name}" for name, value in arguments.items() if value is not False} | negated <= set(rendered)


@pytest.mark.parametrize("name", ["port", "api-key", "ssl-keyfile", "grpc", "api-server-count"])
def test_the_server_s_own_flags_stay_with_the_plan(make_blueprint: Make, name: str) -> None:
    value = True if name == "grpc" else "1"
    [found] = messages(make_blueprint(stack={"llmD": {}}, engine={"vllm": {"args": {name: value}}}))
    assert found.startswith(f"the plan sets '{name}' itself; ")


@pytest.mark.parametrize(("weights", "reached"), [(GPT_OSS, True), (None, False)])
def test_the_frontend_reaches_the_vocabulary_of_harmony(
    make_blueprint: Make, weights: dict[str, str] | None, *, reached: bool
) -> None:
    """Without its vocabulary, Dynamo's parser for gpt-oss drops tool calls and reasoning."""
    blueprint = make_blueprint(**({"weights": weights} if weights else {}))
    frontend = build_plan(blueprint).models[0].deployments[0].processes[0]
    direct = str(frontend.environment["NO_PROXY"]).split(",")
    assert ("openaipublic.blob.core.windows.net" in direct) is reached


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        ("vllm", {"pooler-config": "{}"}),
        ("vllm", {"classify-worker": True}),
        ("sglang", {"rerank-worker": True}),
    ],
)
def test_a_model_that_ranks_or_classifies_is_refused(
    make_blueprint: Make, engine: str, arguments: dict[str, object]
) -> None:
    """Workers of such models have other routes, which nothing here serves."""
    [found] = messages(make_blueprint(engine={engine: {"args": arguments}}))
    assert "only models that write text and embedding models (task: embed) are served here" in found


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        ("vllm", {"runner": "pooling"}),
        ("vllm", {"convert": "embed"}),
        ("vllm", {"embedding-worker": True}),
        ("sglang", {"is-embedding": True}),
    ],
)
def test_the_switches_of_an_embedding_model_follow_from_its_task(
    make_blueprint: Make, engine: str, arguments: dict[str, object]
) -> None:
    """With the switch alone, the plan keeps the parsers, the routing and the sizes of a model that writes."""
    [found] = messages(make_blueprint(engine={engine: {"args": arguments}}))
    assert "set task: embed, with the engine vllm" in found
