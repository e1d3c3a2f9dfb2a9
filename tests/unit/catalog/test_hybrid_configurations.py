"""Rules of hybrid classes that recorded configurations do not reach: other spellings, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from inference_catalog.configurations.config_fields import ModelConfigError
from inference_catalog.configurations.describe import describe
from tests.unit.catalog.recorded_layers import cases, configurations

#: Classes of this file, and what vLLM allocates for their weights on one device.
ALLOCATED = {
    case["name"]: case["weights"]
    for group, case in cases()
    if group == "classes"
    and case["tp"] == 1
    and case["name"].startswith(
        ("BailingMoeV2_5", "BailingMoeV3", "FalconH1", "Lfm2", "Longcat", "OlmoH", "Plamo", "Step3", "Zamba")
    )
}


def counted(name: str, **changes: Any) -> dict[str, Any]:
    """Return what is counted of a recorded configuration with other fields. None leaves one out."""
    changed = deepcopy(configurations("classes")[name]["configuration"]) | changes
    return describe({field: value for field, value in changed.items() if value is not None})


@pytest.mark.parametrize("name", ALLOCATED)
def test_weights_are_all_but_small_vectors(name: str) -> None:
    """Nearer than elsewhere: a projection of linear attention is less than 1 % beside many experts."""
    assert counted(name)["weight_bytes"] == pytest.approx(ALLOCATED[name], rel=1e-4)


def test_a_state_beside_attention_is_of_no_layer_of_its_own() -> None:
    sizes = {"FalconH1ForCausalLM": 32, "Zamba2ForCausalLM": 54, "LongcatFlashForCausalLM": 28}
    for name, layers in sizes.items():
        groups = counted(name)["cached_layers"]
        assert sum(each["count"] for each in groups if each.get("own", True)) == layers


def test_heads_of_mamba_that_a_file_leaves_out_divide_its_channels() -> None:
    given = counted("FalconH1ForCausalLM")
    assert counted("FalconH1ForCausalLM", mamba_d_head="auto") == given
    assert counted("FalconH1ForCausalLM", mamba_d_head=None) == given


@pytest.mark.parametrize(
    ("changes", "width"),
    [
        ({}, 8192),
        ({"block_ffn_dim_multiplier": 1.3}, 10752),
        ({"block_multiple_of": 1000}, 9000),
        ({"block_auto_adjust_ff_dim": False}, 12288),
        ({"block_ff_dim": None, "intermediate_size": 12288}, 8192),
    ],
)
def test_the_width_of_lfm2_is_two_thirds_of_the_one_in_its_file(changes: dict[str, Any], width: int) -> None:
    assert counted("Lfm2ForCausalLM", **changes)["feed_forward_size"] == width


def test_layers_of_lfm2_are_listed_by_number_or_by_type() -> None:
    chosen = configurations("classes")["Lfm2ForCausalLM"]["configuration"]["full_attn_idxs"]
    types = ["full_attention" if index in chosen else "conv" for index in range(32)]
    given = counted("Lfm2ForCausalLM")
    assert counted("Lfm2ForCausalLM", full_attn_idxs=None, layer_types=types) == given
    [every] = counted("Lfm2ForCausalLM", full_attn_idxs=None)["cached_layers"]
    assert (every["kind"], every["count"]) == ("full", 32)


def test_layers_behind_whole_groups_attend() -> None:
    """21 layers in groups of 5: the last of each group, and the one behind them (``_is_kda_layer``)."""
    latent, states = counted("BailingMoeV3ForCausalLM", num_hidden_layers=21)["cached_layers"]
    assert (latent["count"], states["count"]) == (5, 16)


@pytest.mark.parametrize(
    ("gate", "values"), [(None, 0), ("head_wise", 16), ("element_wise", 16 * 128)], ids=str
)
def test_latent_attention_may_have_a_gate(gate: str | None, values: int) -> None:
    name, field = "BailingMoeV3ForCausalLM", "gated_attention_proj_granularity_type"
    given, without = (counted(name, **{field: each})["matrix_parameters"] for each in (gate, None))
    assert given - without == 6 * 2048 * values


def test_a_list_of_layers_may_go_on_with_those_for_prediction() -> None:
    name = "Step3p5ForCausalLM"
    types = configurations("classes")[name]["configuration"]["layer_types"]
    assert len(types) == 48
    found = counted(name)
    shorter = counted(name, layer_types=types[:45], num_nextn_predict_layers=0)
    assert shorter["cached_layers"] == found["cached_layers"]
    window = 4096 * (96 * 128 + 2 * 8 * 128 + 96) + 96 * 128 * 4096
    layer = window + 3 * 4096 * 11264 + 2 * 4096 * 4096 + 5 * 4096
    assert found["prediction_weight_bytes"] == 3 * 2 * layer


def test_embeddings_of_several_tokens_are_weights_that_a_token_does_not_use() -> None:
    name = "LongcatFlashNgramForCausalLM"
    whole, without = counted(name), counted(name, ngram_vocab_size_ratio=None)
    tables = 12 * 78 * 131072 + 12 * 12
    assert whole["weight_bytes"] - without["weight_bytes"] == 2 * (tables * 256 + 3072 * 3072)
    assert whole["active_parameters_billion"] == without["active_parameters_billion"]


def test_adapters_of_attention_are_counted_if_a_file_has_them() -> None:
    name = "Zamba2ForCausalLM"
    more = counted(name)["matrix_parameters"]
    more -= counted(name, use_shared_attention_adapter=False)["matrix_parameters"]
    assert more == 9 * 3 * 128 * 2 * 5120


def test_layers_share_as_many_blocks_as_a_file_has() -> None:
    name = "Zamba2ForCausalLM"
    more = counted(name)["matrix_parameters"] - counted(name, num_mem_blocks=1)["matrix_parameters"]
    assert more == 3 * 5120 * 5120 + 5120 * 2560 + 3 * 2560 * 10240


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "experts": (
        "Step3TextForCausalLM",
        {"moe_layers_enum": "4,five"},
        "moe_layers_enum: got '4,five', must be numbers of layers with commas between them, such as '3,4,5'",
    ),
    "blocks": (
        "Zamba2ForCausalLM",
        {"layers_block_type": ["hybrid"] * 53},
        "must be a list of 54 texts, each one of hybrid, linear_attention, mamba",
    ),
    "width": (
        "Lfm2ForCausalLM",
        {"block_ffn_dim_multiplier": "1"},
        "block_ffn_dim_multiplier: got '1', must be a number above 0, at most 100",
    ),
    "types": (
        "Step3p5ForCausalLM",
        {"layer_types": ["full_attention"] * 46},
        "must be a list of 45 texts, one per layer",
    ),
    "groups": ("BailingMoeV3ForCausalLM", {"layer_group_size": None}, "give 'layer_group_size'"),
    "linear heads": ("OlmoHybridForCausalLM", {"linear_num_key_heads": None}, "give 'linear_num_key_heads'"),
}


@pytest.mark.parametrize(("name", "changes", "expected"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_counted_is_refused(name: str, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ModelConfigError) as raised:
        counted(name, **changes)
    assert expected in str(raised.value)
