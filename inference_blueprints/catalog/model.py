"""Properties of a language model that are known before it is downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from inference_blueprints.catalog.vision import Vision

KV_CACHE_BYTES: Mapping[str, float] = MappingProxyType(
    {"auto": 2, "bf16": 2, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
)
"""Bytes per cached value, by the engines' names of its type."""


@dataclass(frozen=True, slots=True)
class Model:
    """An open model, according to its publisher's ``config.json``.

    Parameters
    ----------
    name
        Hugging Face id, such as ``Qwen/Qwen3-8B``.
    architecture
        The class named in ``config.json``, such as ``Qwen3ForCausalLM``.
    parameters_billion, active_parameters_billion
        All parameters, and the active parameters per token (equal for dense models), in 10⁹.
    layers, hidden_size, vocabulary_size
        Sizes of the language model (not of a vision tower).
    attention_heads, kv_heads, head_size
        Number of query heads, number of key/value heads, and size of one head. Latent attention caches no
        heads.
    attention
        ``gqa``: keys and values are cached per head; ``mla``: one compressed latent vector per token.
    kv_latent_size
        Size of that vector (``kv_lora_rank + qk_rope_head_dim``); 0 for ``gqa``.
    experts
        Routed experts per layer; 0 for dense models.
    feed_forward_size
        Width of the feed-forward layer, or of one expert's; tensor parallelism splits it.
    weight_type
        Type of the published weights: ``bf16``, ``fp8``, ``mxfp4`` or ``int4``.
    weight_bytes
        Size of all published weights in bytes, including embeddings and vision tower.
    expert_weight_bytes
        Size of the routed experts' weights; 0 for dense models.
    context_length
        Tokens that the published configuration allows without changing the position encoding.
    vision
        The part that reads images; None for models that read only text.
    answer_format
        Name of the format of its answers. None if its publisher defines none.
    gated
        Whether Hugging Face requires an accepted licence and a token.
    licence
        SPDX identifier, or the publisher's name of the licence.
    source
        Source of the architecture's numbers.
    """

    name: str
    architecture: str
    parameters_billion: float
    active_parameters_billion: float
    layers: int
    hidden_size: int
    vocabulary_size: int
    attention_heads: int
    kv_heads: int
    head_size: int
    attention: Literal["gqa", "mla"]
    kv_latent_size: int
    experts: int
    feed_forward_size: int
    weight_type: Literal["bf16", "fp8", "mxfp4", "int4"]
    weight_bytes: int
    expert_weight_bytes: int
    context_length: int
    vision: Vision | None
    answer_format: str | None
    gated: bool
    licence: str
    source: str

    def kv_bytes_per_token(self, kv_cache_dtype: str = "auto", tensor_parallel_size: int = 1) -> float:
        """Bytes of KV cache per token on one device.

        Grouped-query attention stores a key and a value for each KV head. A device holds its share of the
        heads, and at least one (vLLM replicates heads if there are fewer than devices). Latent attention
        stores one complete vector on every device. Every layer counts with full attention. For models with
        sliding windows (gpt-oss, gemma-3) this is an upper bound, because some of their layers store less.

        Parameters
        ----------
        kv_cache_dtype
            The engine's name of the type. ``auto`` means the two bytes of the activations.
        tensor_parallel_size
            Devices that share each layer.

        Returns
        -------
        float
            Bytes per token per device.

        Raises
        ------
        ValueError
            If the type is not one of ``KV_CACHE_BYTES``.
        """
        if kv_cache_dtype not in KV_CACHE_BYTES:
            allowed = ", ".join(KV_CACHE_BYTES)
            raise ValueError(f"got KV cache type '{kv_cache_dtype}', allowed are {allowed}")
        numbers = self.kv_latent_size
        if self.attention == "gqa":
            numbers = 2 * self.head_size * max(1, -(-self.kv_heads // tensor_parallel_size))
        return self.layers * numbers * KV_CACHE_BYTES[kv_cache_dtype]
