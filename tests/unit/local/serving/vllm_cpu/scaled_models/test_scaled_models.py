"""Scaled-down models of every entry of the catalogue whose class has one; the others are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

import inference_catalog as catalog
from inference_catalog.model import DraftMethod
from inference_contracts.errors import UserError
from inference_local.serving.vllm_cpu.scaled_models import (
    refusal,
    write_scaled_draft,
    write_scaled_model,
)
from inference_local.serving.vllm_cpu.scaled_models.tables import document

_CALL = {
    "id": "functions.look:0",
    "type": "function",
    "function": {"name": "look", "arguments": {"at": "it"}},
}
_TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
_CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}]},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "functions.look:0", "content": "A tree."},
]


#: Classes with a scaled-down model.
_CLASSES = document("architectures")["architectures"]
_SCALED = [name for name, each in sorted(catalog.models().items()) if each.architecture in _CLASSES]


def _read(directory: Path, name: str) -> Any:
    return json.loads((directory / name).read_text(encoding="utf-8"))


def _language(directory: Path) -> dict[str, Any]:
    config = _read(directory, "config.json")
    language: dict[str, Any] = config.get("text_config", config)
    return language


def _rendered(directory: Path, messages: list[dict[str, Any]], **variables: Any) -> str:
    template = _read(directory, "tokenizer_config.json")["chat_template"]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    text: str = environment.from_string(template).render(messages=messages, **variables)
    return text


@pytest.fixture(scope="module", params=_SCALED)
def model(request: pytest.FixtureRequest) -> catalog.Model:
    return catalog.model(request.param)


@pytest.fixture(scope="module")
def directory(model: catalog.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scaled_model(model, tmp_path_factory.mktemp("model"), tensor_parallel_size=4)


def test_heads_split_as_those_of_the_real_model(model: catalog.Model, directory: Path) -> None:
    language = _language(directory)
    assert language["num_attention_heads"] == model.attention_heads
    assert language["num_key_value_heads"] == model.kv_heads
    assert language["intermediate_size"] % 4 == 0


def test_class_and_context_are_those_of_the_real_model(model: catalog.Model, directory: Path) -> None:
    assert _read(directory, "config.json")["architectures"] == [model.architecture]
    assert _language(directory)["max_position_embeddings"] == model.context_length


def test_each_kind_of_layer_is_kept(model: catalog.Model, directory: Path) -> None:
    config, language = _read(directory, "config.json"), _language(directory)
    assert (language.get("sliding_window") or 0) == model.window
    assert ("kv_lora_rank" in language) == (model.attention == "mla")
    assert ("index_head_dim" in language) == (model.index_layers > 0)
    assert ("vision_config" in config) == (model.vision is not None)
    experts = [language[name] for name in language if "experts" in name and "per_tok" not in name]
    assert bool(experts) == (model.experts > 0)
    if model.window_layers:
        assert sorted(language["layer_types"]) == ["full_attention", "sliding_attention"]


def test_no_value_is_left_open(directory: Path) -> None:
    assert '"$' not in (directory / "config.json").read_text(encoding="utf-8")


def test_the_ends_of_answers_are_tokens(directory: Path) -> None:
    ids = _read(directory, "tokenizer.json")["model"]["vocab"]
    ends = _read(directory, "generation_config.json")["eos_token_id"]
    assert _read(directory, "config.json")["eos_token_id"] == ends
    assert ids[_read(directory, "tokenizer_config.json")["eos_token"]] == ends[0]
    assert sorted(ids.values()) == list(range(_language(directory)["vocab_size"]))


def test_a_conversation_is_written_in_its_order(directory: Path) -> None:
    text = _rendered(directory, _CONVERSATION, add_generation_prompt=True)
    assert text.index("Be brief.") < text.index("What is it?") < text.index("A tree.") < len(text)
    assert not _rendered(directory, _CONVERSATION, add_generation_prompt=False).startswith(text + " ")


def test_tools_and_calls_are_written(model: catalog.Model, directory: Path) -> None:
    if model.answer_format is None:  # its family has no tools
        return
    text = _rendered(directory, _CONVERSATION, tools=[_TOOL])
    assert '"parameters": {"type": "object"}' in text
    assert text.count("look") > _rendered(directory, _CONVERSATION[:2], tools=[_TOOL]).count("look")


@pytest.mark.parametrize(
    ("name", "switch", "asked", "otherwise"),
    [
        ("Qwen/Qwen3-8B", "enable_thinking", "assistant\n", "<think>\n\n</think>\n\n"),
        ("nvidia/DeepSeek-V3.1-NVFP4", "thinking", "<think>", "</think>"),
        ("zai-org/GLM-5-FP8", "enable_thinking", "<think>", "</think>"),
        ("moonshotai/Kimi-K2.5", "thinking", "<think>", "<think></think>"),
    ],
)
def test_thinking_can_be_switched(tmp_path: Path, name: str, switch: str, asked: str, otherwise: str) -> None:
    directory = write_scaled_model(catalog.model(name), tmp_path, tensor_parallel_size=1)
    for value, end in ((True, asked), (False, otherwise)):
        text = _rendered(directory, _CONVERSATION[:2], add_generation_prompt=True, **{switch: value})
        assert text.endswith(end)


def test_every_answer_format_of_these_has_a_chat_format() -> None:
    formats = {catalog.model(name).answer_format for name in _SCALED} - {None}
    assert formats <= set(document("chat_formats")["formats"])


@pytest.mark.parametrize("name", sorted(catalog.models().keys() - set(_SCALED)))
def test_a_model_of_another_class_is_refused_before_and_by_the_writer(name: str, tmp_path: Path) -> None:
    model = catalog.model(name)
    assert refusal(model)
    with pytest.raises(UserError, match=f"got architecture {model.architecture}, scaled models exist for"):
        write_scaled_model(model, tmp_path, tensor_parallel_size=1)


def test_an_unknown_architecture_is_refused_before_and_by_the_writer(tmp_path: Path) -> None:
    unknown = replace(catalog.model("Qwen/Qwen3-8B"), architecture="Unknown")
    assert "Unknown" in str(refusal(unknown))
    with pytest.raises(UserError, match="got architecture Unknown"):
        write_scaled_model(unknown, tmp_path, tensor_parallel_size=1)


def test_a_model_that_runs_is_not_refused() -> None:
    assert refusal(catalog.model("Qwen/Qwen3-8B")) is None
    assert "sparse attention" in str(refusal(catalog.model("zai-org/GLM-5-FP8")))


@pytest.mark.parametrize(
    ("method", "class_name"), [("eagle", "EagleLlamaForCausalLM"), ("eagle3", "LlamaForCausalLMEagle3")]
)
def test_a_draft_has_the_width_and_the_words_of_its_model(
    tmp_path: Path, method: DraftMethod, class_name: str
) -> None:
    write_scaled_model(catalog.model("Qwen/Qwen3-8B"), tmp_path / "model", tensor_parallel_size=2)
    write_scaled_draft(tmp_path / "model", tmp_path / "draft", method)
    model, draft = (
        json.loads((tmp_path / name / "config.json").read_text(encoding="utf-8"))
        for name in ("model", "draft")
    )
    assert draft["architectures"] == [class_name]
    assert draft["num_hidden_layers"] == 1
    assert draft["eagle_aux_hidden_state_layer_ids"] == [0, 1, 2]  # before, between and after two layers
    assert draft["draft_vocab_size"] == draft["vocab_size"] == model["vocab_size"]
    for size in ("hidden_size", "num_attention_heads", "num_key_value_heads", "max_position_embeddings"):
        assert draft[size] == model[size]
