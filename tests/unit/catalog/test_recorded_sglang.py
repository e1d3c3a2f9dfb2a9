"""What is counted for SGLang is what its own classes allocate, and how its pools divide memory, within 1 %.

`scripts/record_sglang_layers.py` wrote SGLang's answers, for pools of 1 TiB. How many requests the pools hold
follows from their sizes: a request has a place for each token, in the pool for windows for those inside the
window (``SWAKVPool``), and its states (``MambaPool``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference_catalog.cache_rules import CacheUse, pool_block_bytes, request_bytes, state_bytes
from inference_catalog.model import LAYER_LETTERS, Model
from inference_catalog.pipeline_stages import stages_of
from inference_catalog.weight_rules import expert_padding
from tests.unit.catalog.recorded_layers import case_name, counted

_RECORDED = Path(__file__).with_name("recorded_sglang")
LENGTHS = (1024, 8192, 131072)
#: SGLang takes the type of the cache from ModelOpt's export if the ``config.json`` does not have it
#: (``modelopt_mixed_config_incomplete`` in ``model_loader/weight_utils.py``). vLLM does not, nor the entry.
FP8_IN_THE_EXPORT = ("nvidia/Qwen3.6-35B-A3B-NVFP4",)
#: Compressed attention keeps fixed memory for the most running requests, which short requests do not share.
FIXED_PER_REQUEST = 65536


def _cases() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for file in sorted(_RECORDED.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        group = "catalogue" if file.stem == "fourDevices" else file.stem
        found += [(group, case) for case in document["cases"] if "error" not in case]
    return found


CASES = _cases()
WITH_STATES = [(group, case) for group, case in CASES if "state" in case]


def _use(case: dict[str, Any]) -> CacheUse:
    return CacheUse(
        rule="sglang",
        tensor_parallel_size=case["tp"],
        kv_type=case["kv"] if case["name"] in FP8_IN_THE_EXPORT else case["given_kv"],
        capability=case["sm"][0],
    )


def _places(case: dict[str, Any], tokens: int) -> float:
    """Return how many requests of so many tokens the recorded pools hold."""
    places = case["tokens"] / tokens
    if case["window_tokens"]:
        places = min(places, case["window_tokens"] / min(tokens, case["window"]))
    if "state" in case:
        places = min(places, case["states"] / case["states_per_request"])
    return float(places)


def test_sglang_answers_for_most_models() -> None:
    assert len({case["name"] for _, case in CASES}) > 85
    assert len(WITH_STATES) > 40


@pytest.mark.parametrize(("group", "case"), CASES, ids=case_name)
def test_pools_hold_as_many_requests_as_are_counted(group: str, case: dict[str, Any]) -> None:
    model, use = counted(group, case["name"]), _use(case)
    pools = case["budget"] - pool_block_bytes(model, use)
    for tokens in LENGTHS:
        if tokens > case["longest"] or (model.cache.page_alignment and tokens < FIXED_PER_REQUEST):
            continue
        held = pools / request_bytes(model, use, tokens)
        assert held == pytest.approx(_places(case, tokens), rel=0.01), tokens


@pytest.mark.parametrize(("group", "case"), WITH_STATES, ids=case_name)
def test_a_state_is_as_large_as_sglang_s(group: str, case: dict[str, Any]) -> None:
    assert state_bytes(counted(group, case["name"]), _use(case)) == pytest.approx(case["state"], rel=0.01)


#: Its class for experts in NVFP4 holds the scales of blocks twice (``w13_blockscale_swizzled`` in
#: ``modelopt_quant.py``), for kernels other than TensorRT-LLM's, so devices hold up to a tenth more.
TWICE_THE_SCALES = 0.11
IN_NVFP4 = [(group, case) for group, case in CASES if counted(group, case["name"]).weight_type == "nvfp4"]
SAME_WEIGHTS = [each for each in CASES if each not in IN_NVFP4]


@pytest.mark.parametrize(("group", "case"), IN_NVFP4, ids=case_name)
def test_scales_of_nvfp4_are_counted_once(group: str, case: dict[str, Any]) -> None:
    [model] = stages_of(counted(group, case["name"]), 1, "sglang")
    held = model.rank_weight_bytes(case["tp"])
    assert 0.99 * held <= case["weights"] <= (1 + TWICE_THE_SCALES) * held


@pytest.mark.parametrize(("group", "case"), SAME_WEIGHTS, ids=case_name)
def test_a_device_holds_the_weights_that_sglang_allocates(group: str, case: dict[str, Any]) -> None:
    [model] = stages_of(counted(group, case["name"]), 1, "sglang")
    held = model.rank_weight_bytes(case["tp"], 1, expert_padding(model, _use(case)))
    assert held == pytest.approx(case["weights"] - _column_orders(model, case["tp"]), rel=0.01)


def _column_orders(model: Model, devices: int) -> int:
    """Return the bytes of the order of the columns of experts in 4 bits, which the weights' loading frees.

    Both matrices of an expert have two orders of 32 bits (``w13_weight_g_idx`` and ``w13_g_idx_sort_indices``
    in ``compressed_tensors_wNa16_moe.py``).
    """
    if model.weight_type != "int4":
        return 0
    kinds = [model.layer_types[LAYER_LETTERS.index(letter)] for letter in model.layer_order]
    layers = sum(each.expert_weight_bytes > 0 for each in kinds)
    return layers * model.experts * 2 * 4 * (model.hidden_size + model.feed_forward_size // devices)
