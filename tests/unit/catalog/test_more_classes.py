"""Classes whose layers differ by number, and those that only SGLang has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from inference_catalog.catalogue import shipped
from inference_catalog.configurations.config_fields import ModelConfigError
from inference_catalog.configurations.describe import describe
from tests.unit.catalog.recorded_layers import TEXT, configurations


def problems(configuration: Mapping[str, Any]) -> str:
    with pytest.raises(ModelConfigError) as raised:
        describe(configuration)
    return str(raised.value)


# Layers that differ by number.


def blocks(*parts: tuple[int | None, float | None]) -> dict[str, Any]:
    """Return a configuration with the heads per KV head and the factor of the width of each layer."""
    given = [
        {
            "attention": {"n_heads_in_group": group, "no_op": group is None},
            "ffn": {"ffn_mult": factor, "no_op": factor is None},
        }
        for group, factor in parts
    ]
    own = {"architectures": ["DeciLMForCausalLM"], "num_hidden_layers": len(parts), "block_configs": given}
    return TEXT | {"hidden_size": 512, "num_key_value_heads": None} | own


def test_a_layer_may_have_sizes_of_its_own_or_miss_a_part() -> None:
    found = describe(blocks((4, 1.5), (8, 1.0), (None, 1.5), (4, None)))
    groups = [(group["count"], group["kv_heads"]) for group in found["cached_layers"]]
    assert groups == [(2, 2), (1, 1)]
    attention = 3 * 2 * 512 * 512 + 2 * 2 * 512 * 2 * 64 + 2 * 512 * 64
    networks = 3 * 512 * (512 + 512 + 512)  # 341 is rounded up to a multiple of 256
    assert found["matrix_parameters"] == attention + networks
    assert (found["layers"], found["kv_heads"]) == (4, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_configs": "all"}, "block_configs: got 'all', must be a list of objects, one per layer"),
        ({"num_hidden_layers": 3}, "must be a list of 3 objects, one per layer"),
        ({"block_configs": [{}, {}]}, "block_configs[0]: must have 'attention' and 'ffn'"),
    ],
)
def test_wrong_blocks_are_refused(changes: dict[str, Any], message: str) -> None:
    assert message in problems(blocks((4, 1.5), (8, 1.0)) | changes)


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("attention", {"replace_with_linear": True}, "block_configs[1].attention: 'replace_with_linear'"),
        ("attention", {"n_heads_in_group": 9}, "block_configs[1].attention.n_heads_in_group: got 9"),
        ("ffn", {"ffn_mult": -1}, "block_configs[1].ffn.ffn_mult: got -1"),
    ],
)
def test_a_part_of_a_block_is_checked(part: str, changes: dict[str, Any], message: str) -> None:
    configuration = json.loads(json.dumps(blocks((4, 1.5), (8, 1.0))))
    configuration["block_configs"][1][part] |= changes
    assert message in problems(configuration)


GEMMA = TEXT | {
    "architectures": ["Gemma3nForCausalLM"],
    "head_dim": 8,
    "sliding_window": 16,
    "num_kv_shared_layers": 2,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 900,
}


def test_each_layer_may_have_a_width() -> None:
    wide = describe(GEMMA)["matrix_parameters"]
    listed = describe(GEMMA | {"intermediate_size": [256, 256, 128, 192]})["matrix_parameters"]
    assert wide - listed == 3 * 64 * (128 + 64)
    assert "a list of 4 numbers above 0" in problems(GEMMA | {"intermediate_size": [256, 128]})


def test_a_list_of_windows_is_one_window_for_each_layer() -> None:
    """A layer that attends to everything has none."""
    name = "ExaoneMoeForCausalLM"
    types = ["sliding_attention", "full_attention"] * 2
    own = TEXT | {"architectures": [name], "layer_types": types, "sliding_window": 16}
    found = describe(own | {"sliding_windows": [8, None, 32, None]})["cached_layers"]
    assert [each.get("window", 0) for each in found] == [0, 8, 32]
    assert "sliding_windows: got" in problems(own | {"sliding_windows": [None, 8, 32, None]})


# Classes that only SGLang registers: vLLM's class with the same layers has recorded answers.

KIMI = {
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "linear_attn_config": {"kda_layers": [1, 2, 3], "num_heads": 4, "head_dim": 16},
}
SAME: Mapping[str, tuple[str, dict[str, Any]]] = {
    "BaichuanForCausalLM": ("LlamaForCausalLM", {}),
    "BailingMoEForCausalLM": ("BailingMoeForCausalLM", {}),
    "Ernie4_5_ForCausalLM": ("Ernie4_5ForCausalLM", {}),
    "ExaoneMoEForCausalLM": ("ExaoneMoeForCausalLM", {}),
    "KimiK3LinearForCausalLM": ("KimiLinearForCausalLM", KIMI),
    "LLaDA2MoeModelLM": ("BailingMoeV2ForCausalLM", {}),
    "NanbeigeForCausalLM": ("LlamaForCausalLM", {"num_loops": 1}),
    "QuantMixtralForCausalLM": ("MixtralForCausalLM", {"num_local_experts": 8}),
    "SDARForCausalLM": ("Qwen3ForCausalLM", {}),
    "SDARMoeForCausalLM": ("Qwen3MoeForCausalLM", {}),
    "TorchNativeLlamaForCausalLM": ("LlamaForCausalLM", {}),
    "TorchNativePhi3ForCausalLM": ("Phi3ForCausalLM", {}),
    "XverseForCausalLM": ("LlamaForCausalLM", {}),
}


@pytest.mark.parametrize("name", SAME)
def test_a_class_of_sglang_has_the_layers_of_the_class_that_it_is(name: str) -> None:
    like, changes = SAME[name]
    recorded = configurations("classes").get(like)
    own = (recorded["configuration"] if recorded else TEXT) | changes
    found = describe(own | {"architectures": [name]})
    assert found | {"architecture": like} == describe(own | {"architectures": [like]})
    assert shipped().registered_classes.classes[name].engines[-1] == "sglang"


def test_a_file_may_give_the_width_of_two_matrices_together() -> None:
    """The first Qwen, and Molmo."""
    qwen = describe(TEXT | {"architectures": ["QWenLMHeadModel"], "intermediate_size": 512})
    assert (
        qwen["matrix_parameters"]
        == describe(TEXT | {"architectures": ["Qwen2ForCausalLM"]})["matrix_parameters"]
    )


def test_a_token_that_passes_layers_twice_is_cached_twice() -> None:
    once = describe(TEXT | {"architectures": ["NanbeigeForCausalLM"]})
    twice = describe(TEXT | {"architectures": ["NanbeigeForCausalLM"], "num_loops": 2})
    [group] = once["cached_layers"]
    assert twice["cached_layers"] == [group, group | {"own": False}]
    assert twice["weight_bytes"] == once["weight_bytes"]


def test_a_gate_may_have_one_value_per_head() -> None:
    gated = TEXT | {"architectures": ["Spark2_5ForCausalLM"]}
    found = describe(gated)["matrix_parameters"]
    assert found - describe(gated | {"headwise_attn_output_gate": False})["matrix_parameters"] == 4 * 64 * 8
