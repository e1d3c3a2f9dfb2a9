"""What a request takes of an engine's cache: vLLM's own numbers, and the rules of other engines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.cache_rules import CacheUse, cache_type, pool_block_bytes, request_bytes, state_bytes
from inference_catalog.cached_layers import (
    CachedLayers,
    CacheSettings,
    LayersError,
    LayerState,
    as_data,
    read_layers,
)
from inference_catalog.configurations.config_fields import ConfigFields
from inference_catalog.configurations.mixers.mamba import recurrent_state
from inference_catalog.weight_rules import expert_padding

REQUESTS = json.loads(
    Path(__file__).with_name("data").joinpath("requests_of_vllm.json").read_text(encoding="utf-8")
)["requests"]
MIB = 1024**2
HOPPER = CacheUse(rule="vllm", capability="9.0", in_flight_tokens=4096)
#: Weights of rank 0 in bytes, as vLLM 0.31.0 allocates them for compute capability 9.0.
ALLOCATED = [
    ("openai/gpt-oss-120b", 1, 70_756_592_256),
    ("openai/gpt-oss-120b", 8, 9_254_395_584),
    ("openai/gpt-oss-20b", 1, 14_679_227_520),
    ("deepseek-ai/DeepSeek-V3.2", 1, 674_086_322_528),
    ("deepseek-ai/DeepSeek-V3.2", 8, 86_075_841_568),
    ("Qwen/Qwen3-235B-A22B-FP8", 8, 29_713_411_312),
    ("nvidia/Qwen3-235B-A22B-NVFP4", 1, 134_101_652_144),
    ("google/gemma-3-27b-it", 1, 54_864_813_280),
]


def model_of(*layers: CachedLayers, **changes: Any) -> catalog.Model:
    return replace(catalog.model("Qwen/Qwen3-8B"), cached_layers=layers, **changes)


def named(each: dict[str, Any]) -> str:
    return f"{each['name']}-tp{each['tensorParallelSize']}-sm{each['capability']}-{each['prefixCaching']}"


@pytest.mark.parametrize("recorded", REQUESTS, ids=named)
def test_requests_take_what_vllm_says_at_each_length(recorded: dict[str, Any]) -> None:
    layers = read_layers(recorded["layers"])
    model = model_of(*layers, cache=CacheSettings(**recorded["settings"]))
    use = CacheUse(
        rule="vllm",
        kv_type=recorded["kvType"],
        capability=recorded["capability"],
        in_flight_tokens=recorded["inFlightTokens"],
        prefix_caching=recorded["prefixCaching"],
    )
    assert pool_block_bytes(model, use) == pytest.approx(recorded["poolBlockBytes"], rel=0.001)
    for tokens, size in recorded["requestBytes"].items():
        assert request_bytes(model, use, int(tokens)) == pytest.approx(size, rel=0.001), tokens


@pytest.mark.parametrize(("name", "size", "allocated"), ALLOCATED)
def test_a_device_holds_the_weights_that_vllm_allocates(name: str, size: int, allocated: int) -> None:
    model = catalog.models().get(name)
    if model is None:
        model = catalog.model("Qwen/Qwen3-235B-A22B").stored_as("fp8")
    assert model.rank_weight_bytes(size, 1, expert_padding(model, HOPPER)) == pytest.approx(
        allocated, rel=0.01
    )


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("google/gemma-3-27b-it", 4967.5),
        ("openai/gpt-oss-120b", 1301.1),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", 5120.0),
        ("nvidia/Qwen3-235B-A22B-NVFP4", 3008.0),
        ("deepseek-ai/DeepSeek-V3.2", 2447.6),
    ],
)
def test_a_long_request_of_a_shipped_model_is_admitted_as_vllm_admits_it(name: str, mib: float) -> None:
    assert request_bytes(catalog.model(name), HOPPER, 32768) / MIB == pytest.approx(mib, rel=0.001)


@pytest.mark.parametrize(
    ("rule", "capability", "kv_type", "latent"),
    [
        ("vllm", "9.0", "auto", 1152),
        ("vllm", "9.0", "fp8", 656),
        ("vllm", "9.0", "fp8_e4m3", 576),
        ("vllm", "10.0", "fp8", 576),
        ("vllm", "12.0", "auto", 656),
        ("sglang", "9.0", "auto", 1152),
        ("sglang", "9.0", "fp8_e4m3", 656),
        ("sglang", "10.0", "auto", 576),
        ("every token", "9.0", "fp8", 576),
    ],
)
def test_sparse_latent_attention_has_a_layout_per_device(
    rule: Any, capability: str, kv_type: str, latent: int
) -> None:
    use = CacheUse(rule=rule, capability=capability, kv_type=kv_type)
    model = catalog.model("deepseek-ai/DeepSeek-V3.2")
    assert request_bytes(model, use, 4096) == 4096 * 61 * (latent + 132)


@pytest.mark.parametrize(
    ("capability", "kernels", "latent"),
    [
        ("9.0", "FLASHMLA_SPARSE", 656),
        ("9.0", "FLASHINFER_MLA_SPARSE_SM90", 576),
        ("10.0", "FLASHMLA_SPARSE", 656),
        ("10.0", "FLASHINFER_MLA_SPARSE", 576),
    ],
)
def test_chosen_kernels_decide_about_the_layout(capability: str, kernels: str, latent: int) -> None:
    use = CacheUse(rule="vllm", capability=capability, kv_type="fp8", kernels=kernels)
    model = catalog.model("deepseek-ai/DeepSeek-V3.2")
    assert request_bytes(model, use, 4096) == 4096 * 61 * (latent + 132)


@pytest.mark.parametrize(
    ("state_type", "recurrent_type", "sizes"),
    [
        ("auto", "auto", (2, 4)),
        ("float32", "auto", (4, 4)),
        ("auto", "bfloat16", (2, 2)),
        ("float32", "float16", (4, 2)),
    ],
)
def test_states_have_the_types_that_the_engine_is_told(
    state_type: str, recurrent_type: str, sizes: tuple[int, int]
) -> None:
    states = (LayerState(300, 2), LayerState(700, 4))
    model = model_of(CachedLayers(2, "state", states=states))
    use = CacheUse(rule="vllm", state_type=state_type, recurrent_type=recurrent_type, prefix_caching=False)
    held = 2 * (300 * sizes[0] + 700 * sizes[1])
    assert state_bytes(model, use) == request_bytes(model, use, 100) == held


def test_a_part_of_a_state_without_a_type_of_its_own_follows_the_other() -> None:
    model = model_of(CachedLayers(1, "state", states=(LayerState(300, 2), LayerState(700, 2))))
    assert state_bytes(model, CacheUse(state_type="float32")) == 4000


def test_a_checkpoint_sets_the_type_of_its_cache_unless_the_user_does() -> None:
    model = catalog.model("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert cache_type(model, HOPPER) == "fp8"
    assert cache_type(model, replace(HOPPER, kv_type="bfloat16")) == "bfloat16"


WINDOWED = (
    CachedLayers(6, "full", kv_heads=2, head_size=64),
    CachedLayers(6, "window", kv_heads=2, head_size=64, window=1024),
)


def test_an_engine_that_frees_no_windows_keeps_every_token() -> None:
    use = replace(HOPPER, frees_windows=False)
    assert request_bytes(model_of(*WINDOWED), use, 16_000) == 16_000 * 12 * 2 * 2 * 64 * 2


def test_sglang_divides_the_pools_of_windows_by_a_ratio() -> None:
    use = CacheUse(rule="sglang")
    layer = 2 * 2 * 64 * 2
    pooled = model_of(*WINDOWED, architecture="GptOssForCausalLM")
    assert request_bytes(pooled, use, 10_000) == 10_000 * (6 + 0.8 * 6) * layer
    # Short requests fill the pool for windows, which has four tokens for five of the other, first.
    assert request_bytes(pooled, use, 1000) == 1000 * (6 / 0.8 + 6) * layer
    assert request_bytes(model_of(*WINDOWED), use, 10_000) == 10_000 * 12 * layer


STATE = CachedLayers(3, "state", states=(LayerState(1000, 4),))
SHORT = CachedLayers(3, "state", states=(LayerState(1000, 2, set_by_model=True),))


@pytest.mark.parametrize(("prefixes", "states"), [(True, 5), (False, 1)])
def test_sglang_keeps_states_in_nine_of_nineteen_parts(*, prefixes: bool, states: int) -> None:
    model = model_of(CachedLayers(1, "full", kv_heads=1, head_size=1), STATE)
    use = CacheUse(rule="sglang", prefix_caching=prefixes)
    assert request_bytes(model, use, 16) == pytest.approx(states * 3 * 4000 * 1.9 / 0.9, abs=1)
    assert pool_block_bytes(model, use) == pytest.approx(3 * 4000 * 1.9 / 0.9, abs=1)
    assert request_bytes(model, use, 10**6) == pytest.approx(10**6 * 4 * 1.9, abs=1)


@pytest.mark.parametrize(
    ("given", "size"),
    [({}, 4), ({"mamba_ssm_dtype": "bfloat16"}, 2), ({"mamba_ssm_cache_dtype": "bfloat16"}, 4)],
)
def test_sglang_keeps_states_in_32_bits_unless_the_model_s_file_sets_16(
    given: dict[str, str], size: int
) -> None:
    state = recurrent_state(ConfigFields(given), 700)
    model = model_of(CachedLayers(1, "state", states=(LayerState(300, 2), state)))
    assert state_bytes(model, CacheUse(rule="sglang")) == 2 * 300 + size * 700
    assert state_bytes(model, CacheUse(rule="vllm")) == 2 * 1000


def test_groups_of_a_state_are_copied_to_devices_beyond_their_number() -> None:
    state = LayerState(800, 2, groups=2, group_values=10)
    assert [state.bytes_on_device(size) for size in (1, 2, 8)] == [1640, 820, 220]


def test_layers_are_the_same_after_they_were_written() -> None:
    layers = (*WINDOWED, STATE, SHORT, CachedLayers(2, "latent", fixed_bytes=132, own=False))
    assert read_layers(as_data(layers)) == layers


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "layers: got an empty list"),
        ([{"kind": "full"}], r"layers\[0\].count: is missing"),
        ([{"count": 1, "kind": "fuller"}], "got 'fuller', allowed are full, window, chunk, latent"),
        ([{"count": 1, "kind": "full", "kvHeads": 1, "headSize": 1, "size": 1}], "unknown fields size"),
        ([{"count": 1, "kind": "window", "kvHeads": 1, "headSize": 1}], "window: is missing"),
        ([{"count": 1, "kind": "latent"}], "give headSize, or fixedBytes"),
        ([{"count": 1, "kind": "full", "kvHeads": 1, "headSize": 1, "own": False}], "at least one must be"),
        ([{"count": 1, "kind": "state", "states": [{"values": 0}]}], "values: got '0', must be a whole"),
    ],
)
def test_a_wrong_list_of_layers_says_what_is_wrong(given: Any, message: str) -> None:
    with pytest.raises(LayersError, match=message):
        read_layers(given, camel=True)
