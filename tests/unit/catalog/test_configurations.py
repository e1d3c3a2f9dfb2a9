"""Entries made from a config.json: what is counted, in which family's words, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.cache_rules import CacheUse, token_bytes
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.config_fields import ModelConfigError
from inference_catalog.configurations.describe import describe

DENSE = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "vocab_size": 1000,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "max_position_embeddings": 4096,
}
ATTENTION = 2 * 64 * 64 + 2 * 64 * 16
DENSE_MATRICES = 4 * (ATTENTION + 3 * 64 * 256)
DENSE_OTHERS = 2 * 1000 * 64 + 9 * 64
MIXTURE = DENSE | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "head_dim": 8,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}
LATENT = DENSE | {
    "architectures": ["DeepseekV32ForCausalLM"],
    "q_lora_rank": 48,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "index_n_heads": 4,
    "index_head_dim": 128,
    "num_nextn_predict_layers": 1,
}


def entry_of(configuration: dict[str, Any], exported: dict[str, Any] | None = None) -> catalog.Model:
    facts = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}
    return model_entry("acme/tiny", describe(configuration, exported) | facts, Path("tiny.json"))


def problems(configuration: object) -> list[str]:
    with pytest.raises(ModelConfigError) as raised:
        describe(configuration)
    return str(raised.value).splitlines()


def test_a_dense_model_is_its_matrices_and_embeddings() -> None:
    entry = entry_of(DENSE)
    assert entry.matrix_parameters == DENSE_MATRICES
    assert entry.weight_bytes == 2 * (DENSE_MATRICES + DENSE_OTHERS)
    assert (entry.weight_type, entry.weight_block, entry.experts, entry.head_size) == ("bf16", 0, 0, 8)
    assert entry.kv_bytes_per_token() == 4 * 2 * 2 * 8 * 2


@pytest.mark.parametrize(
    ("changes", "parameters"),
    [
        ({"tie_word_embeddings": True}, -1000 * 64),
        ({"num_key_value_heads": None}, 4 * 2 * 64 * 48),
        ({"head_dim": 16}, 4 * ATTENTION),
        ({"attention_bias": True}, 4 * (8 + 2 * 2) * 8 + 4 * 64),
        ({"architectures": ["Qwen2ForCausalLM"]}, 4 * (8 + 2 * 2) * 8),
        ({"architectures": ["Gemma2ForCausalLM"], "head_dim": 8, "sliding_window": 8}, -1000 * 64),
    ],
)
def test_what_a_file_leaves_out_is_the_family_s_default(changes: dict[str, Any], parameters: int) -> None:
    whole = entry_of(DENSE | changes).weight_bytes / 2
    assert whole - DENSE_MATRICES - DENSE_OTHERS == parameters


def test_a_language_model_in_a_section_of_its_own_is_the_same() -> None:
    text = {name: value for name, value in DENSE.items() if name != "architectures"}
    nested = {"architectures": ["LlamaForCausalLM"], "text_config": text, "tie_word_embeddings": True}
    assert entry_of(nested) == entry_of(DENSE | {"tie_word_embeddings": True})


EXPERTS = {
    "Qwen": {"num_experts": 16},
    "DeepSeek": {"num_experts": None, "n_routed_experts": 16},
    "Mixtral": {"num_experts": None, "num_local_experts": 16},
}


@pytest.mark.parametrize("names", EXPERTS.values(), ids=EXPERTS)
def test_experts_have_different_names(names: dict[str, Any]) -> None:
    entry = entry_of(MIXTURE | names)
    assert (entry.experts, entry.feed_forward_size) == (16, 32)
    assert entry.expert_weight_bytes == 2 * 4 * 16 * 3 * 64 * 32


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"decoder_sparse_step": 2}, 2),
        ({"mlp_only_layers": [0, 3]}, 2),
        ({"first_k_dense_replace": 3}, 1),
        ({"moe_layer_freq": [0, 1, 1, 1]}, 3),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}, 3),
    ],
)
def test_some_layers_have_no_experts(changes: dict[str, Any], layers: int) -> None:
    assert entry_of(MIXTURE | changes).expert_weight_bytes == 2 * layers * 16 * 3 * 64 * 32


@pytest.mark.parametrize(
    ("changes", "width"),
    [({"n_shared_experts": 2}, 64), ({"shared_expert_intermediate_size": 48}, 48)],
)
def test_shared_experts_are_used_by_every_token(changes: dict[str, Any], width: int) -> None:
    more = entry_of(MIXTURE | changes).matrix_parameters - entry_of(MIXTURE).matrix_parameters
    assert more == 4 * 3 * 64 * width


def test_latent_attention_caches_a_latent_and_a_key_of_the_indexer() -> None:
    entry = entry_of(LATENT)
    assert (entry.attention, entry.cached_layers[0].head_size, entry.index_layers) == ("mla", 40, 4)
    assert entry.kv_bytes_per_token() == 4 * (40 * 2 + 128 + 4)
    projections = 64 * 48 + 48 * 8 * 24 + 64 * 40 + 32 * 8 * 32 + 8 * 16 * 64
    indexer = 48 * 4 * 128 + 64 * 128
    dense, sparse = 3 * 64 * 256, 17 * 3 * 64 * 32
    assert entry.matrix_parameters == 4 * (projections + indexer) + dense + 3 * sparse


def test_an_fp8_cache_of_sparse_attention_is_that_of_vllm() -> None:
    """Each token takes 656 bytes, and the key of the indexer 132 (flashmla_sparse.py of vLLM 0.31.0)."""
    model = catalog.model("deepseek-ai/DeepSeek-V3.2")
    use = CacheUse(rule="vllm", kv_type="fp8", capability="9.0")
    assert token_bytes(model, use) == 61 * (656 + 132)


def test_layers_that_share_an_indexer_s_choice_cache_nothing_for_it() -> None:
    shared = LATENT | {"indexer_types": ["full", "shared", "shared", "full"]}
    assert entry_of(shared).index_layers == 2


@pytest.mark.parametrize("heads", [[8, 8, 8], [8, 8, 8, 7], [8, 8, 8, 0]])
def test_heads_of_each_layer_are_one_per_layer_and_divided_by_kv_heads(heads: list[int]) -> None:
    [problem] = set(problems(DENSE | {"num_attention_heads_per_layer": heads}))
    assert "num_attention_heads_per_layer" in problem
    assert "a list of 4 numbers, each a multiple of the 2 KV heads" in problem


def test_a_layer_for_prediction_is_a_layer_and_a_projection() -> None:
    entry = entry_of(LATENT)
    layer = (entry.matrix_parameters - entry_of(LATENT | {"num_hidden_layers": 3}).matrix_parameters) * 2
    router, indexer_weights = 16 * 64, 64 * 4
    assert entry.predicted_layers == 1
    assert entry.prediction_weight_bytes == layer + 2 * (2 * 64 * 64 + 5 * 64 + router + indexer_weights)
    assert entry_of(DENSE).prediction_weight_bytes == 0


@pytest.mark.parametrize(
    ("changes", "window", "layers"),
    [
        ({"architectures": ["MistralForCausalLM"], "sliding_window": 100}, 100, 4),
        ({"architectures": ["MistralForCausalLM"], "sliding_window": None}, 0, 0),
        ({"architectures": ["MistralForCausalLM"]}, 4096, 4),
        ({"sliding_window": 100}, 0, 0),
        ({"architectures": ["Gemma3ForCausalLM"], "sliding_window": 100}, 100, 4),
        (
            {"architectures": ["Gemma3ForCausalLM"], "sliding_window": 100, "sliding_window_pattern": 2},
            100,
            2,
        ),
        (
            {"sliding_window": 100, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
            100,
            3,
        ),
        (
            {
                "architectures": ["Qwen2ForCausalLM"],
                "use_sliding_window": True,
                "max_window_layers": 3,
                "sliding_window": 100,
            },
            100,
            1,
        ),
        ({"architectures": ["Qwen2ForCausalLM"], "sliding_window": 100}, 0, 0),
    ],
)
def test_windows_are_those_of_the_family(changes: dict[str, Any], window: int, layers: int) -> None:
    entry = entry_of(DENSE | changes)
    assert (entry.window, entry.window_layers) == (window, layers)


FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}},
    "ignore": ["lm_head"],
}


def compressed(**weights: object) -> dict[str, Any]:
    return COMPRESSED | {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


@pytest.mark.parametrize(
    ("settings", "weight_type", "block", "each"),
    [
        (FP8, "fp8", 128, 1 + 4 / 128**2),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8", 0, 1),
        (COMPRESSED, "fp8", 0, 1),
        (compressed(num_bits=8, type="int", strategy="channel"), "int8", 0, 1),
        (compressed(num_bits=4, type="int", group_size=128), "int4", 128, 0.5 + 2 / 128),
        (compressed(num_bits=4, type="int", group_size=64, symmetric=False), "int4", 64, 0.5 + 2.5 / 64),
        (compressed(num_bits=4, type="float", group_size=16), "nvfp4", 16, 0.5 + 1 / 16),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", 0, 1),
        ({"quant_algo": "NVFP4"}, "nvfp4", 16, 0.5625),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", 128, 0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True}, "int4", 32, 0.5 + 2.5 / 32),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", 0, 1),
    ],
)
def test_quantised_matrices_have_their_bytes(
    settings: dict[str, Any], weight_type: str, block: int, each: float
) -> None:
    entry = entry_of(DENSE | {"quantization_config": settings})
    assert (entry.weight_type, entry.weight_block) == (weight_type, block)
    assert entry.weight_bytes == round(DENSE_MATRICES * each + 2 * DENSE_OTHERS)


def test_an_export_beside_the_file_counts() -> None:
    exported = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.0*"]}}
    entry = entry_of(DENSE, exported)
    assert entry.weight_bytes == DENSE_MATRICES * 1.25 + 2 * DENSE_OTHERS


@pytest.mark.parametrize(
    ("ignored", "parameters"),
    [
        ("model.layers.0.self_attn.q_proj", 64 * 64),
        ("model.language_model.layers.0.self_attn.q_proj", 64 * 64),
        ("self_attn", 4 * ATTENTION),
        ("re:.*self_attn.*", 4 * ATTENTION),
        ("re:.*mlp\\.(gate|up)_proj.*", 4 * 2 * 64 * 256),
        ("*.self_attn.*", 4 * ATTENTION),
        ("model.layers.3*", ATTENTION + 3 * 64 * 256),
        ("gate", 0),
    ],
)
def test_modules_that_are_left_out_stay_in_16_bits(ignored: str, parameters: int) -> None:
    entry = entry_of(DENSE | {"quantization_config": {"quant_method": "fp8", "ignored_layers": [ignored]}})
    assert entry.weight_bytes == DENSE_MATRICES + parameters + 2 * DENSE_OTHERS


def test_layers_may_have_types_of_their_own() -> None:
    layers = {"model.layers.0.mlp": {"quant_algo": "NVFP4"}, "model.layers.1.mlp": {"quant_algo": "FP8"}}
    settings = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    entry = entry_of(DENSE | {"quantization_config": settings})
    mlp = 3 * 64 * 256
    assert entry.weight_bytes == 2 * (DENSE_MATRICES + DENSE_OTHERS) - mlp * (2 - 0.5625) - mlp


def test_mxfp4_is_of_experts() -> None:
    entry = entry_of(MIXTURE | {"quantization_config": {"quant_method": "mxfp4"}})
    assert entry.expert_weight_bytes == 4 * 16 * 3 * 64 * 32 * 4.25 / 8
    assert entry.weight_type == "mxfp4"


@pytest.mark.parametrize("stored", ["fp8", "fp8Blocks", "int8", "int4", "nvfp4"])
def test_a_model_can_be_stored_in_another_type(stored: str) -> None:
    entry = entry_of(MIXTURE)
    smaller = entry.stored_as(stored)
    saved = entry.weight_bytes - smaller.weight_bytes
    assert 0.99 <= saved / (
        entry.matrix_parameters * (1.5 if smaller.weight_type in ("int4", "nvfp4") else 1)
    ) <= 1.01 or stored in ("int4", "nvfp4")
    assert smaller.expert_weight_bytes < entry.expert_weight_bytes
    assert smaller.stored_as("int8") == smaller


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"hidden_size": None}, "hidden_size: is missing; give 'hidden_size'"),
    "text": ({"vocab_size": "many"}, "vocab_size: got 'many', must be a whole number from 1 to 100000000"),
    "boolean": ({"vocab_size": True}, "vocab_size: got True, must be a whole number from 1 to 100000000"),
    "fraction": ({"hidden_size": 64.5}, "hidden_size: got 64.5, must be a whole number from 1 to 100000000"),
    "negative": ({"hidden_size": -64}, "hidden_size: got -64, must be a whole number from 1 to 100000000"),
    "huge": (
        {"num_hidden_layers": 10**30},
        f"num_hidden_layers: got {10**30}, must be a whole number from 1 to 1000",
    ),
    "list": ({"num_hidden_layers": [1]}, "num_hidden_layers: got [1], must be a whole number from 1 to 1000"),
    "heads": (
        {"num_attention_heads": 9},
        "got hidden_size 64 and 9 attention heads; give 'head_dim'",
    ),
    "KV heads": (
        {"num_key_value_heads": 3},
        "got 8 attention heads and 3 KV heads, which must divide them",
    ),
    "flag": ({"attention_bias": "no"}, "attention_bias: got 'no', must be true or false"),
    "section": ({"text_config": 7}, "text_config: got 7, must be an object"),
    "layer types": (
        {"layer_types": ["linear_attention"] * 4},
        "layer_types: layers of the type linear_attention are not counted for LlamaForCausalLM; counted are "
        "attention, chunked_attention, deepseek_sparse_attention, full_attention, sliding_attention",
    ),
    "state": (
        {"mamba_d_state": 16},
        "mamba_d_state: layers with this field are not counted for LlamaForCausalLM; write the class that "
        "has them into 'architectures' of a copy of the file",
    ),
    "quantisation": (
        {"quantization_config": {"quant_method": "bitsandbytes"}},
        "quantization_config.quant_method: got 'bitsandbytes', must be one of awq, compressed-tensors, fp8, "
        "gptq, modelopt, modelopt_fp4, mxfp4; the size of others is not counted here",
    ),
    "bits": (
        {"quantization_config": {"quant_method": "awq", "bits": 3, "group_size": 128}},
        "bits: got 3, must be 4 or 8",
    ),
    "expression": (
        {"quantization_config": {"quant_method": "fp8", "ignored_layers": ["re:(a+)+$"]}},
        "quantization_config.ignored_layers: got ['re:(a+)+$'], must be expressions without repeated groups "
        "and with few repetitions",
    ),
    "groups": (
        {"quantization_config": {"quant_method": "compressed-tensors"}},
        "quantization_config: config_groups: is missing; it says how the weights are stored",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), WRONG.values(), ids=WRONG)
def test_a_field_that_cannot_be_counted_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert any(expected in line for line in problems(DENSE | changes)), problems(DENSE | changes)


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems({"architectures": ["LlamaForCausalLM"]})) == 6


@pytest.mark.parametrize("configuration", [[], "text", None, 7, {}, {"architectures": "LlamaForCausalLM"}])
def test_something_else_than_a_configuration_is_refused(configuration: object) -> None:
    assert len(problems(configuration)) == 1


def test_a_class_that_is_not_counted_is_named() -> None:
    [problem] = problems(DENSE | {"architectures": ["AcmeForCausalLM"]})
    assert "AcmeForCausalLM" in problem
    assert "no release with it is known here" in problem
