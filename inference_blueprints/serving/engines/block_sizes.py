"""Tokens of a block of the KV cache that kernels of attention take.

A model's layers say what their own kernels take at least (`CachedLayers.block`); the tables have what
kernels take that a user chose by name.

vLLM splits a block into blocks of the kernels (``select_common_block_size`` in ``v1/worker/utils.py`` of
0.31.0), so its block must be a multiple of what they take (``get_supported_kernel_block_sizes`` in
``v1/attention/backends`` and ``models``): it stops at any other size, or takes slower kernels. SGLang has
blocks of one size, and changes the size that its kernels do not take (``arg_groups/overrides.py`` and
``arg_groups/model_overrides`` of 0.5.21).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from inference_catalog import Model

#: Tokens that most kernels take a multiple of.
SMALLEST_BLOCK = 16
#: Kernels of vLLM that need more tokens in a block, and how many.
_VLLM: Mapping[str, int] = MappingProxyType(
    {
        "B12X": 64,
        "CUTLASS_MLA": 128,
        "FLASHINFER_MLA": 32,
        "FLASHINFER_MLA_SPARSE": 32,
        "FLASHINFER_MLA_SPARSE_SM90": 64,
        "FLASHINFER_MLA_SPARSE_SM120": 64,
        "FLASHMLA": 64,
        "FLASHMLA_SPARSE": 64,
        "FLASH_ATTN_MLA_SPARSE": 64,
        "HPC_ATTN": 64,
        "TOKENSPEED_MLA": 32,
    }
)
#: Kernels of SGLang that take some sizes only: `_mla_backend_page_constraints` of its ``overrides.py``.
_SGLANG: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "cutedsl_mla": (32, 64),
        "flashmla": (64,),
        "hpc_ops": (64,),
        "tokenspeed_mla": (32, 64),
        "trtllm_mha": (16, 32, 64, 128),
        "trtllm_mla": (32, 64),
    }
)
#: `_fa4_page_constraint` of the same file, on these devices, without latent attention.
_FA4, _FA4_BLOCK, _FA4_CAPABILITIES = "fa4", 128, "10."
#: From so many tokens on, SGLang sets the size of a model itself: 64 for sparse attention of DeepSeek V3.2
#: and GLM-5 (``model_overrides/deepseek_v2.py``), 128 for MiniMax-M3 on capability 10.x
#: (``minimax_m3.py``), 256 for DeepSeek V4 (``deepseek_v4.py``).
_SET_BY_SGLANG = 64
#: "DeepSeek-V4 requires KV cache block sizes of 128 or 256 tokens" (TensorRT-LLM,
#: ``examples/models/core/deepseek_v4/README.md``).
_TENSORRT_COMPRESSED = (128, 256)


def kernel_block(model: Model) -> int:
    """Return the tokens that a block must be a multiple of for the kernels of a model's own layers."""
    whole = (each.block for each in model.cached_layers if each.kind in ("full", "latent"))
    return max(whole, default=SMALLEST_BLOCK)


def vllm_block(model: Model, kernels: Iterable[str]) -> int:
    """Return the tokens that vLLM's block must be a multiple of. All sizes are powers of two."""
    return max(kernel_block(model), *(_VLLM.get(name, SMALLEST_BLOCK) for name in (*kernels, "")))


def sglang_blocks(model: Model, capability: str, kernels: Iterable[str]) -> tuple[int, ...]:
    """Return the sizes that SGLang keeps, the largest last; none if it keeps every size."""
    own = kernel_block(model)
    if own == _SET_BY_SGLANG or (own > _SET_BY_SGLANG and (_is_compressed(model) or _has_fa4(capability))):
        return (own,)
    for name in kernels:
        if name in _SGLANG:
            return _SGLANG[name]
        if name == _FA4 and model.attention != "mla" and _has_fa4(capability):
            return (_FA4_BLOCK,)
    return ()


def tensorrt_blocks(model: Model) -> tuple[int, ...]:
    """Return the sizes that TensorRT-LLM takes, its own choice first; none if it takes every power of two."""
    return _TENSORRT_COMPRESSED if _is_compressed(model) else ()


def _has_fa4(capability: str) -> bool:
    return capability.startswith(_FA4_CAPABILITIES)


def _is_compressed(model: Model) -> bool:
    """Whether it has the compressed attention of DeepSeek V4, whose pages alone are aligned."""
    return model.cache.page_alignment > 0
