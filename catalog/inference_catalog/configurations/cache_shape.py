"""What the layers of a language model cache, by the shape that its ``config.json`` describes."""

from __future__ import annotations

import math

from inference_catalog.cached_layers import CachedLayers
from inference_catalog.configurations.text_shape import TextShape

#: Scales of FP8 keys and of packed latent vectors: four bytes per 128 values.
_SCALE_BYTES, _SCALE_BLOCK = 4, 128
_PLAIN_BYTES = 2
#: Tokens of a block of sparse latent attention (``flashmla_sparse.py`` and ``indexer.py`` in
#: ``v1/attention/backends/mla`` of vLLM 0.31.0).
_SPARSE_BLOCK = 64


def cached_layers(shape: TextShape) -> list[CachedLayers]:
    """Return the groups of equal layers of a model, without layers for multi-token prediction.

    Parameters
    ----------
    shape
        The layers, as ``read_text_shape`` returns them.
    """
    if shape.latent:
        return _latent(shape)
    windowed = sum(shape.windowed)
    groups = (("full", shape.layers - windowed, 0), ("window", windowed, shape.window))
    return [
        CachedLayers(count, kind, kv_heads=shape.kv_heads, head_size=shape.head_size, window=window)  # type: ignore[arg-type]
        for kind, count, window in groups
        if count
    ]


def _latent(shape: TextShape) -> list[CachedLayers]:
    """Return layers with one latent vector per token, and the keys of the indexer of sparse attention.

    ``fp8_ds_mla`` keeps the compressed values in FP8 with scales, and the position in 16 bits: 656 bytes for
    512 + 64 values (``v1/attention/backends/mla/flashmla_sparse.py`` of vLLM 0.31.0).
    """
    latent, indexer = shape.latent, shape.indexer
    if latent is None:
        return []
    size = latent.latent_rank + latent.rope_size
    if indexer is None:
        return [CachedLayers(shape.layers, "latent", head_size=size)]
    scales = _SCALE_BYTES * math.ceil(latent.latent_rank / _SCALE_BLOCK)
    packed = latent.latent_rank + scales + latent.rope_size * _PLAIN_BYTES
    key = indexer.head_size + _SCALE_BYTES * math.ceil(indexer.head_size / _SCALE_BLOCK)
    keys = CachedLayers(sum(indexer.layers), "latent", fixed_bytes=key, block=_SPARSE_BLOCK, own=False)
    vectors = CachedLayers(shape.layers, "latent", head_size=size, packed_bytes=packed, block=_SPARSE_BLOCK)
    return [vectors, keys]
