"""What is counted from a config.json is what vLLM's own classes allocate: weights within 1 %, layers exactly.

Half of the configurations were held out: they were first counted when their readers were done.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.cache_rules import CacheUse
from inference_catalog.cached_layers import CacheSettings
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.config_fields import ModelConfigError
from inference_catalog.configurations.describe import describe
from inference_catalog.weight_rules import expert_padding

ALLOCATED = json.loads(
    Path(__file__).with_name("data").joinpath("allocated_by_vllm.json").read_text(encoding="utf-8")
)["models"]
ON_DEVICES = [(model, each) for model in ALLOCATED for each in model["allocated"]]
STRANGE: tuple[Any, ...] = (None, "x", [], {"a": 1}, 1000)
FACTS = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}


def counted(model: dict[str, Any]) -> catalog.Model:
    return model_entry(model["name"], describe(model["configuration"]) | FACTS, Path("model.json"))


def named(value: object) -> str:
    match value:
        case {"name": name}:
            return str(name)
        case {"tensorParallelSize": size}:
            return f"TP {size}"
        case _:
            return ""


@pytest.mark.parametrize("model", ALLOCATED, ids=named)
def test_weights_are_those_that_vllm_allocates(model: dict[str, Any]) -> None:
    entry = counted(model)
    for each in model["allocated"]:
        size = each["tensorParallelSize"]
        held = entry.rank_weight_bytes(size, 1, expert_padding(entry, CacheUse(rule="vllm")))
        assert held == pytest.approx(each["weightBytes"], rel=0.01)


@pytest.mark.parametrize(("model", "allocated"), ON_DEVICES, ids=named)
def test_layers_are_those_for_which_vllm_allocates_a_cache(
    model: dict[str, Any], allocated: dict[str, Any]
) -> None:
    size = allocated["tensorParallelSize"]
    found: Counter[tuple[str, int, int, int]] = Counter()
    for group in counted(model).cached_layers:
        is_state = group.kind == "state"
        held = group.state_bytes(size) if is_state else int(group.entry_bytes(2, size))
        if group.kind != "none":
            found[group.kind, held, group.window, group.tokens_per_entry] += group.count
    expected: Counter[tuple[str, int, int, int]] = Counter()
    for each in allocated["layers"]:
        key = (each["kind"], each["bytes"], each.get("window", 0), each.get("tokensPerEntry", 1))
        expected[key] += each["count"]
    assert found == expected


def test_layers_for_prediction_are_counted_where_they_are_published() -> None:
    predicted = {model["name"]: counted(model).predicted_layers for model in ALLOCATED}
    assert {name for name, layers in predicted.items() if layers} == {
        "Qwen/Qwen3.5-27B",
        "Qwen/Qwen3.5-35B-A3B",
        "Qwen/Qwen3.5-122B-A10B",
        "Qwen/Qwen3.5-397B-A17B",
        "deepseek-ai/DeepSeek-V4-Flash",
        "deepseek-ai/DeepSeek-V4-Pro",
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
        "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
    }
    assert set(predicted.values()) == {0, 1}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("moonshotai/Kimi-K3", {"states_per_request": 3}),
        ("deepseek-ai/DeepSeek-V4-Flash", {"page_alignment": 576}),
    ],
)
def test_a_class_decides_about_its_cache_as_a_whole(name: str, settings: dict[str, int]) -> None:
    cache = counted(next(model for model in ALLOCATED if model["name"] == name)).cache
    assert {key: getattr(cache, key) for key in settings} == settings
    assert counted(ALLOCATED[0]).cache == CacheSettings()


V4 = next(model for model in ALLOCATED if model["name"] == "deepseek-ai/DeepSeek-V4-Flash")


@pytest.mark.parametrize(
    ("model_type", "settings", "weight_type", "tool"),
    [
        ("deepseek_v4", {}, "mxfp4", "fp8"),
        ("deepseek_v4", {"moe_quant_algo": "NVFP4"}, "nvfp4", "modelopt"),
        ("deepseek_ref", {}, "fp8", "fp8"),
    ],
    ids=["published", "ModelOpt", "converted to FP8"],
)
def test_experts_of_deepseek_v4_have_the_type_that_engines_take(
    model_type: str, settings: dict[str, str], weight_type: str, tool: str
) -> None:
    """FP8 is the method of the other layers."""
    changed = deepcopy(V4["configuration"]) | {"model_type": model_type}
    changed["quantization_config"] |= settings
    entry = counted({"name": V4["name"], "configuration": changed})
    assert (entry.weight_type, entry.quantisation_method) == (weight_type, tool)


def test_an_encoder_caches_nothing() -> None:
    assert counted(next(model for model in ALLOCATED if model["name"] == "bge-m3")).cached_layers == ()


def places(section: dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in section.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from places(value, (*before, key))


@pytest.mark.parametrize("model", ALLOCATED, ids=named)
def test_a_field_of_any_type_is_counted_or_refused(model: dict[str, Any]) -> None:
    """Other errors would end the command with a traceback."""
    for place in places(model["configuration"]):
        for value in STRANGE:
            changed = deepcopy(model["configuration"])
            section = changed
            for key in place[:-1]:
                section = section[key]
            section[place[-1]] = value
            with suppress(ModelConfigError):
                describe(changed)
