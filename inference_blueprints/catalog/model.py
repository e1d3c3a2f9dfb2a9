"""What is known of a language model before it is downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from inference_blueprints.catalog.vision import Vision

KV_CACHE_BYTES: Mapping[str, float] = MappingProxyType(
    {"auto": 2, "bf16": 2, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
)
"""Bytes of one cached number by the engines' words for its type."""


@dataclass(frozen=True, slots=True)
class Model:
    """One open model, as its publisher's ``config.json`` describes it.

    Parameters
    ----------
    name
        Hugging Face id, such as ``Qwen/Qwen3-8B``.
    architecture
        The class named in ``config.json``, such as ``Qwen3ForCausalLM``.
    parameters_billion, active_parameters_billion
        All parameters, and those that one token passes through (equal for dense models), in 10⁹.
    layers, hidden_size, vocabulary_size
        Of the language model (not of a vision tower).
    attention_heads, kv_heads, head_size
        Query heads, key/value heads and the numbers in one head. Latent attention caches no heads.
    attention
        ``gqa``: keys and values are cached a head; ``mla``: one compressed latent vector a token.
    kv_latent_size
        Numbers in that vector (``kv_lora_rank + qk_rope_head_dim``); 0 for ``gqa``.
    experts
        Routed experts a layer; 0 when dense.
    feed_forward_size
        Width of the feed-forward layer, or of one expert's; tensor parallelism splits it.
    weight_type
        Type of the published weights: ``bf16``, ``fp8``, ``mxfp4`` or ``int4``.
    weight_bytes
        Size of all published weights in bytes, embeddings and vision tower included.
    expert_weight_bytes
        Of those, the routed experts'; 0 when dense.
    context_length
        Tokens that the published configuration allows without changing the position encoding.
    vision
        What reads images; None for models that read text alone.
    gated
        Whether Hugging Face asks for an accepted licence and a token.
    licence
        SPDX identifier, or the publisher's name of it.
    source
        Where the architecture's numbers were read.
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
    gated: bool
    licence: str
    source: str

    def kv_bytes_per_token(self, kv_cache_dtype: str = "auto", tensor_parallel_size: int = 1) -> float:
        """Bytes of KV cache that one token takes on one device.

        Grouped-query attention stores a key and a value for each KV head; a device holds its share of the
        heads, and at least one (vLLM replicates heads when there are fewer than devices). Latent attention
        stores one vector, whole, on every device. Every layer counts as attending to everything: this is an
        upper bound for models with sliding windows (gpt-oss, gemma-3), whose bounded layers hold less.

        Parameters
        ----------
        kv_cache_dtype
            An engine's word for the type; ``auto`` means the two bytes of the activations.
        tensor_parallel_size
            Devices that share each layer.

        Returns
        -------
        float
            Bytes a token a device.

        Raises
        ------
        ValueError
            When the word is not one of ``KV_CACHE_BYTES``.
        """
        if kv_cache_dtype not in KV_CACHE_BYTES:
            allowed = ", ".join(KV_CACHE_BYTES)
            raise ValueError(f"got KV cache type '{kv_cache_dtype}', allowed are {allowed}")
        numbers = self.kv_latent_size
        if self.attention == "gqa":
            numbers = 2 * self.head_size * max(1, -(-self.kv_heads // tensor_parallel_size))
        return self.layers * numbers * KV_CACHE_BYTES[kv_cache_dtype]
