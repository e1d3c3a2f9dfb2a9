"""Thinking by default and a chat template of one's own: what stacks get, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.render.ecs.task_environment import FILES_FOLDER, with_file_paths
from inference_blueprints.render.eks.environment_entries import FileEntry, environment_entries
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, FilePath
from inference_blueprints.spec.chat_template import MAX_BYTES
from inference_contracts.errors import BlueprintError

TEMPLATE = "{%- for each in messages %}\n<|{{ each.role }}|>{{ each['content'] }}\n{%- endfor %}\n"
VARIABLE = "DYN_CUSTOM_JINJA_TEMPLATE"
Write = Callable[..., Path]


@pytest.fixture
def write_blueprint(tmp_path: Path) -> Write:
    """Return a function that writes quickstart with another model section, and a template beside it."""

    def write(
        chat: dict[str, Any],
        template: str | bytes | None = TEMPLATE,
        base: str = "quickstart-g6e",
        **model: Any,
    ) -> Path:
        path = resources.blueprints_directory() / f"{base}.yaml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        document["spec"]["models"][0] |= {"chat": chat} | model
        if template is not None:
            content = template if isinstance(template, bytes) else template.encode()
            (tmp_path / "own.jinja").write_bytes(content)
        (tmp_path / "blueprint.yaml").write_text(json.dumps(document), encoding="utf-8")
        return tmp_path / "blueprint.yaml"

    return write


def deployment_of(path: Path) -> DeploymentPlan:
    return build_plan(load_blueprint(str(path)).blueprint).models[0].deployments[0]


def refusal(path: Path) -> str:
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(str(path))
    return str(caught.value)


def value_of(words: tuple[str, ...], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words else None


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("chat", "mode"),
    [
        ({"thinking": True}, "enabled"),
        ({"thinking": False}, "disabled"),
        ({"template": "own.jinja"}, None),
    ],
)
def test_workers_tell_dynamo_s_frontend_whether_to_think(
    write_blueprint: Write, engine: str, chat: dict[str, Any], mode: str | None
) -> None:
    [worker] = deployment_of(write_blueprint(chat, engine={engine: {}})).workers
    assert value_of(worker.arguments, "--dyn-default-thinking-mode") == mode


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_workers_and_frontends_of_dynamo_have_the_template_at_the_same_place(
    write_blueprint: Write, engine: str
) -> None:
    """The frontend reads it where the worker has it (``lib/llm/src/model_card.rs`` of ai-dynamo/dynamo)."""
    deployment = deployment_of(write_blueprint({"template": "own.jinja"}, engine={engine: {}}))
    files = [process.environment.get(VARIABLE) for process in deployment.processes]
    assert len(files) > 1
    assert set(files) == {FilePath("chat-template.jinja", TEMPLATE)}
    entries = environment_entries({VARIABLE: FilePath("chat-template.jinja", TEMPLATE)})
    assert entries == (FileEntry(VARIABLE, "chat-template.jinja", TEMPLATE),)


@pytest.mark.parametrize("stack", ["llmD", "direct"])
def test_vllm_s_own_server_gets_each_name_of_the_switch_and_the_text(
    write_blueprint: Write, stack: str
) -> None:
    routing: dict[str, Any] = {"leastRequests": {}} if stack == "direct" else {"kvAware": {}}
    chat = {"thinking": False, "template": "own.jinja"}
    [worker] = deployment_of(write_blueprint(chat, stack={stack: {}}, routing=routing)).workers
    assert value_of(worker.arguments, "--chat-template") == TEMPLATE
    names = json.loads(value_of(worker.arguments, "--default-chat-template-kwargs") or "")
    assert names == {"enable_thinking": False, "thinking": False, "thinking_mode": "disabled"}
    assert VARIABLE not in worker.environment


def test_sglang_s_own_server_reads_the_template_from_a_file(write_blueprint: Write) -> None:
    chat = {"thinking": True, "template": "own.jinja"}
    model: dict[str, Any] = {
        "stack": {"direct": {}},
        "routing": {"leastRequests": {}},
        "engine": {"sglang": {}},
    }
    [worker] = deployment_of(write_blueprint(chat, **model)).workers
    assert value_of(worker.arguments, "--chat-template") == "$(CHAT_TEMPLATE)"
    assert worker.environment["CHAT_TEMPLATE"] == FilePath("chat-template.jinja", TEMPLATE)
    assert with_file_paths(worker)[worker.arguments.index("--chat-template") + 1] == (
        f"{FILES_FOLDER}/chat-template.jinja"
    )
    names = json.loads(value_of(worker.arguments, "--default-chat-template-kwargs") or "")
    assert names == {"enable_thinking": True, "thinking": True, "thinking_mode": "enabled"}


def test_llama_cpp_gets_both_without_a_file(write_blueprint: Write) -> None:
    chat = {"thinking": False, "template": "own.jinja"}
    [worker] = deployment_of(write_blueprint(chat, base="graviton-llama-cpp")).workers
    assert value_of(worker.arguments, "--reasoning") == "off"
    assert value_of(worker.arguments, "--chat-template") == TEMPLATE
    # ``--chat-template`` takes any template only after ``--jinja`` (``common/arg.cpp``).
    assert worker.arguments.index("--jinja") < worker.arguments.index("--chat-template")


def test_nothing_changes_without_it(write_blueprint: Write) -> None:
    deployment = deployment_of(write_blueprint({"thinking": True}))
    assert all(VARIABLE not in process.environment for process in deployment.processes)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "own.jinja: cannot be read: No such file or directory"),
        ("{% for each in messages %}\n\n{% endfro %}", "own.jinja:3: is not a Jinja template"),
        ("{{ system_prompt }}", "own.jinja: reads no 'messages'"),
        ("{{ messages }}$(HOME)", "own.jinja: holds '$('"),
        ("{{ messages }}\0", "own.jinja: holds a character with the code 0"),
        (b"{{ messages }}\xff", "own.jinja: is not text in UTF-8"),
        (
            "{{ messages }}" + " " * MAX_BYTES,
            f"own.jinja: has {MAX_BYTES + 14} bytes, allowed are {MAX_BYTES}",
        ),
    ],
)
def test_a_file_that_is_no_template_is_refused(
    write_blueprint: Write, template: str | bytes | None, message: str
) -> None:
    found = refusal(write_blueprint({"template": "own.jinja"}, template))
    assert message in found
    assert "spec.models[0].chat.template" in found


def test_what_engines_add_to_the_language_is_taken(write_blueprint: Write) -> None:
    text = (
        "{% for each in messages %}{% if each.role == 'tool' %}{% continue %}{% endif %}"
        "{% generation %}{{ each.content | tojson }}{% endgeneration %}{% endfor %}"
        "{% if not messages %}{{ raise_exception('empty') }}{% endif %}{{ strftime_now('%d') }}"
    )
    [worker] = deployment_of(write_blueprint({"template": "own.jinja"}, text)).workers
    assert worker.environment[VARIABLE] == FilePath("chat-template.jinja", text)


def test_a_blueprint_from_standard_input_has_no_template(write_blueprint: Write) -> None:
    text = write_blueprint({"template": "own.jinja"}).read_text(encoding="utf-8")
    with pytest.raises(BlueprintError, match="has no files beside it"):
        parse_blueprint(text, "standard input")


@pytest.mark.parametrize(
    ("chat", "model", "message"),
    [
        ({}, {}, "got nothing, expected 'thinking', 'template' or both"),
        (
            {"thinking": False},
            {"engine": {"vllm": {"args": {"dyn-default-thinking-mode": "enabled"}}}},
            "'dyn-default-thinking-mode' of the engine says the same; remove one of them",
        ),
        (
            {"template": "own.jinja"},
            {"engine": {"vllm": {"env": {VARIABLE: "/x"}}}},
            f"'{VARIABLE}' of the engine says the same; remove one of them",
        ),
        (
            {"thinking": False},
            {"engine": {"sglang": {"args": {"use-sglang-tokenizer": True}}}},
            "with 'use-sglang-tokenizer' the engine writes prompts instead",
        ),
        (
            {"thinking": False},
            {"weights": {"huggingFace": "openai/gpt-oss-20b"}},
            "got false, but 'openai/gpt-oss-20b' always thinks",
        ),
        (
            {"thinking": True},
            {"weights": {"huggingFace": "Qwen/Qwen3-VL-8B-Instruct"}},
            "got true, but 'Qwen/Qwen3-VL-8B-Instruct' does not think",
        ),
        (
            {"thinking": True},
            {"weights": {"huggingFace": "tencent/Hy3"}, "instance_types": ["p6-b300.48xlarge"]},
            "got true, but 'tencent/Hy3' thinks only as much as a request says with 'reasoning_effort'",
        ),
    ],
)
def test_what_has_no_effect_is_refused(
    write_blueprint: Write, chat: dict[str, Any], model: dict[str, Any], message: str
) -> None:
    assert message in refusal(write_blueprint(chat, **model))


def test_another_template_may_have_the_switch(write_blueprint: Write) -> None:
    weights = {"huggingFace": "openai/gpt-oss-20b"}
    chat = {"thinking": False, "template": "own.jinja"}
    assert deployment_of(write_blueprint(chat, weights=weights)).workers


def test_a_model_that_thinks_has_a_parser_for_it() -> None:
    """`thinking` of a format agrees with its parsers: what may think has one, and nothing else has."""
    for each in catalog.answer_formats().values():
        named = any(names.reasoning for names in each.parsers.values())
        assert each.name == "kimi-k2" or named == (each.thinking != "never")
