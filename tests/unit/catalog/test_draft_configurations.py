"""Drafts made from a config.json: what is counted, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.config_fields import ModelConfigError
from inference_catalog.configurations.describe import describe

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "vocab_size": 1000,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "max_position_embeddings": 4096,
}
EAGLE = LLAMA | {"architectures": ["EagleLlamaForCausalLM"]}
EAGLE3 = LLAMA | {"draft_vocab_size": 500}
ATTENTION, FEED_FORWARD = 2 * 64 * 64 + 2 * 64 * 16, 3 * 64 * 256


def entry_of(configuration: dict[str, Any]) -> catalog.Model:
    facts = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}
    return model_entry("acme/draft", describe(configuration) | facts, Path("draft.json"))


def test_an_eagle_draft_is_a_layer_behind_a_projection() -> None:
    entry = entry_of(EAGLE)
    assert entry.draft == catalog.Draft("eagle", ("vllm",), 64, 2 * 64)
    assert entry.weight_bytes == 2 * (1000 * 64 + 2 * 64 * 64 + ATTENTION + FEED_FORWARD + 4 * 64)


@pytest.mark.parametrize(
    ("changes", "target", "read"),
    [
        ({}, 64, 3),
        ({"target_hidden_size": 128}, 128, 3),
        ({"num_aux_hidden_states": 4}, 64, 4),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5]}}, 64, 2),
    ],
)
def test_an_eagle_3_draft_reads_hidden_states_of_several_layers(
    changes: dict[str, Any], target: int, read: int
) -> None:
    """``models/llama_eagle3.py`` of vLLM 0.31.0: its first layer reads two vectors, its output is smaller."""
    entry = entry_of(EAGLE3 | changes)
    assert entry.draft == catalog.Draft("eagle3", ("vllm",), target, read * target)
    first_layer = ATTENTION + (64 + 2 * 16) * 64 + FEED_FORWARD
    assert entry.weight_bytes == 2 * (1500 * 64 + read * target * 64 + first_layer + 4 * 64)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "only drafts with weights in 16 bits"),
        ({"parallel_drafting": True}, "parallel_drafting: drafts with this field are not counted"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "eagle_config.use_aux_hidden_state: got False"),
        ({"hidden_size": None}, "hidden_size: is missing"),
    ],
)
def test_a_draft_that_cannot_be_counted_is_refused(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(ModelConfigError, match=part):
        describe(EAGLE3 | changes)


def test_a_llama_model_without_a_vocabulary_of_guesses_is_no_draft() -> None:
    assert entry_of(LLAMA).draft is None


def test_the_catalogue_s_draft_is_counted_from_its_configuration() -> None:
    """``eagle/traineagle3/config.json`` of SafeAILab/EAGLE, the configuration of its authors."""
    configuration = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "max_position_embeddings": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 1,
        "tie_word_embeddings": False,
        "vocab_size": 128256,
        "draft_vocab_size": 32000,
    }
    recorded = catalog.drafts()["yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"]
    facts = {key: getattr(recorded, key) for key in ("answer_format", "gated", "licence", "source")}
    assert model_entry(recorded.name, describe(configuration) | facts, Path("drafts.json")) == recorded
