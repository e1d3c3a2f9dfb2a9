"""The plan sets blocks of the KV cache that the kernels of the model take.

vLLM's own classes answered what they take and what they make of it (`scripts/record_model_layers.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inference_blueprints.serving.engines.block_sizes import vllm_block
from inference_blueprints.serving.engines.sglang import Sglang
from inference_blueprints.serving.engines.tensorrt_llm import TensorRtLlm
from inference_blueprints.serving.engines.vllm import Vllm
from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint
from tests.unit.catalog.recorded_layers import case_name, cases, counted, recorded

Make = Callable[..., Blueprint]

#: The engines' own size, where any is taken.
_VLLM, _SGLANG, _TENSORRT = Vllm().block_size, Sglang().block_size, TensorRtLlm().block_size
_CASES = recorded("blocks")


@pytest.mark.parametrize("case", _CASES, ids=case_name)
def test_vllm_takes_multiples_of_what_kernels_need_and_nothing_else(case: dict[str, Any]) -> None:
    needed = vllm_block(counted("blocks", case["name"]), ())
    assert ("error" not in case) == (case["arguments"]["block_size"] % needed == 0)


@pytest.mark.parametrize("name", sorted({case["name"] for case in _CASES}))
def test_vllm_takes_what_the_plan_sets(name: str) -> None:
    """Red if a planned worker stops with "No common block size"."""
    planned = max(_VLLM, vllm_block(counted("blocks", name), ()))
    found = [case for case in _CASES if case["name"] == name and case["arguments"]["block_size"] == planned]
    assert found
    assert not [case["error"] for case in found if "error" in case]


@pytest.mark.parametrize(("_", "case"), cases(("blocks",)), ids=case_name)
def test_blocks_that_vllm_makes_are_whole_blocks_of_the_router(_: str, case: dict[str, Any]) -> None:
    """Red if vLLM's events are not of whole blocks of the size that llm-d's router is told.

    vLLM makes blocks longer beside states. The router hashes the tokens of an event by its own size
    (``TokensToKVBlockKeys`` in ``pkg/kvevents/pool.go`` of llm-d-kv-cache), so several may be in one block.
    Dynamo's worker tells its router the engine's size (``configure_kv_event_block_size`` in
    ``dynamo/vllm/cache_info.py`` of 1.6).
    """
    told = case["arguments"]["block_size"]
    assert case["block"] % told == 0
    assert all(case["block"] % size == 0 for size in case["kernel_blocks"])
    if not [layers for layers in case["layers"] if layers["kind"] == "MambaSpec"]:
        assert case["block"] == told


@pytest.mark.parametrize(
    ("weights", "sizes"),
    [
        ("Qwen/Qwen3-32B", {"vllm": _VLLM, "sglang": _SGLANG, "tensorrtLlm": _TENSORRT}),
        ("deepseek-ai/DeepSeek-R1", {"vllm": _VLLM, "sglang": _SGLANG, "tensorrtLlm": _TENSORRT}),
        ("deepseek-ai/DeepSeek-V3.2", {"vllm": 64, "sglang": 64, "tensorrtLlm": _TENSORRT}),
        ("deepseek-ai/DeepSeek-V4-Flash", {"vllm": 256, "sglang": 256, "tensorrtLlm": 128}),
        ("nvidia/MiniMax-M3-NVFP4", {"vllm": 128, "sglang": 128}),
    ],
)
def test_every_engine_is_told_a_size_that_it_takes(
    make_blueprint: Make, weights: str, sizes: dict[str, int]
) -> None:
    found = {engine: _size(make_blueprint, weights, {engine: {}}) for engine in sizes}
    assert found == sizes


def test_kernels_that_a_user_chose_decide_too(make_blueprint: Make) -> None:
    """CUTLASS_MLA takes 128 alone: vLLM stops with another size that is an argument."""
    engine = {"vllm": {"args": {"attention-backend": "CUTLASS_MLA"}}}
    assert _size(make_blueprint, "deepseek-ai/DeepSeek-R1", engine) == 128


def _size(make_blueprint: Make, weights: str, engine: dict[str, Any]) -> int:
    blueprint = make_blueprint(
        engine=engine,
        weights={"huggingFace": weights},
        instance_types=["p6-b200.48xlarge"],
        aggregated={"tensorParallelSize": 8},
    )
    [workers] = resolve(blueprint, 0, 0)
    return worker_sizing(workers).block_size
