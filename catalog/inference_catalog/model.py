"""Properties of a model that are known before it is downloaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from inference_catalog.cached_layers import CachedLayers, CacheSettings
from inference_catalog.configurations.weight_schemes import PLAIN, STORED_TYPES, WeightType
from inference_catalog.diffusion import Pipeline
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class Vision:
    """The vision transformer before a language model, and the projections between the two."""

    weight_bytes: int
    """Published size of both in bytes. Included in ``Model.weight_bytes``."""
    hidden_size: int
    """Size of the vector of a patch."""
    patch_pixels: int
    """Pixels per patch."""
    patches_per_token: int
    """Patches that become one token of the prompt."""
    tokens_per_image: int
    """Tokens of every image; 0 if they depend on its size."""
    embedding_size: int
    """Size of the embedding of an image token, including the parts for deeper layers of the language
    model."""
    splits_by_image: bool
    """Whether engines can give whole images to devices, instead of a part of each layer
    (``supports_encoder_tp_data`` in vLLM's model, ``use_data_parallel`` in SGLang's)."""
    scales_to_pixels: bool
    """Whether its processor scales images to the limits ``min_pixels`` and ``max_pixels``."""

    @property
    def limits_images(self) -> bool:
        """Whether the tokens of the largest image are known: all have one size, or a limit can be set."""
        return self.tokens_per_image > 0 or self.scales_to_pixels

    @property
    def pixels_per_token(self) -> int:
        """Pixels of an image per token of the prompt."""
        return self.patch_pixels * self.patches_per_token


# What a draft of speculative decoding (EAGLE) adds to the entry of a model.

DraftMethod = Literal["eagle", "eagle3"]


@dataclass(frozen=True, slots=True)
class DraftClass:
    """A model class of drafts."""

    name: str
    """The class in ``architectures`` of the ``config.json``."""
    method: DraftMethod
    """``eagle``: guesses from the last hidden state of the model; ``eagle3``: from those of several
    layers."""
    engines: tuple[str, ...]
    """Engines that load the class, by the blueprint's key."""
    source: str
    """Source of these facts."""


@dataclass(frozen=True, slots=True)
class Draft:
    """How a draft depends on the model for which it guesses."""

    method: DraftMethod
    """``eagle`` or ``eagle3``, as in ``DraftClass``."""
    engines: tuple[str, ...]
    """Engines that load its class."""
    target_hidden_size: int
    """Hidden size of the model for which it was trained."""
    input_size: int
    """Values per token that its first projection reads. Each device holds this projection whole."""


_ACTIVATION_BYTES = 2
#: FP8 caches have a scale of four bytes per 128 values.
_SCALE_BYTES, _SCALE_BLOCK = 4, 128
#: Values of a latent vector that encode the position (``qk_rope_head_dim`` of every published model).
_POSITION_VALUES = 64
#: A window keeps its last block until no token in it is seen.
_WINDOW_BLOCK = 64
#: vLLM makes groups of the larger kind of layers below this ratio.
_UNEVEN = 1.5

KV_CACHE_BYTES: Mapping[str, float] = MappingProxyType(
    {
        "auto": 2,
        "bf16": 2,
        "bfloat16": 2,
        "float16": 2,
        "f16": 2,
        "fp8": 1,
        "fp8_e4m3": 1,
        "fp8_e5m2": 1,
        # 32 values and a scale of two bytes (``block_q8_0`` of llama.cpp).
        "q8_0": 34 / 32,
    }
)
"""Bytes per cached value, by the engines' names of its type."""


@dataclass(frozen=True, slots=True)
class Model:
    """An open model, according to its publisher's ``config.json``."""

    name: str
    """Hugging Face id, such as ``Qwen/Qwen3-8B``."""
    architecture: str
    """The class named in ``config.json``, such as ``Qwen3ForCausalLM``."""
    parameters_billion: float
    active_parameters_billion: float
    """`parameters_billion`, `active_parameters_billion`: All parameters, and the active parameters per token
    (equal for dense models), in 10⁹."""
    layers: int
    hidden_size: int
    vocabulary_size: int
    """`layers`, `hidden_size`, `vocabulary_size`: Sizes of the language model (not of a vision tower)."""
    attention_heads: int
    kv_heads: int
    head_size: int
    """`attention_heads`, `kv_heads`, `head_size`: Number of query heads, number of key/value heads, and size
    of one head. Latent attention caches no heads."""
    attention: Literal["gqa", "mla"]
    """``gqa``: keys and values are cached per head; ``mla``: one compressed latent vector per token."""
    kv_latent_size: int
    """Size of that vector (``kv_lora_rank + qk_rope_head_dim``); 0 for ``gqa``."""
    index_head_size: int
    index_layers: int
    """`index_head_size`, `index_layers`: Size of the key that the indexer of sparse attention caches per
    token, and layers that have one; 0 without an indexer."""
    window: int
    window_layers: int
    """`window`, `window_layers`: Tokens that layers with a sliding window see, and number of these layers; 0
    without windows."""
    experts: int
    """Routed experts per layer; 0 for dense models."""
    feed_forward_size: int
    """Width of the feed-forward layer, or of one expert's; tensor parallelism splits it."""
    weight_type: WeightType
    """Type of the published weights: ``bf16``, ``fp8``, ``int8``, ``mxfp4``, ``nvfp4`` or ``int4``; ``gguf``
    for a file of llama.cpp."""
    weight_block: int
    """Weights that share a scale along the dimension that devices split; 0 if any split works."""
    weight_bytes: int
    """Size of all published weights in bytes, including embeddings and vision tower, without layers for
    multi-token prediction."""
    expert_weight_bytes: int
    """Size of the routed experts' weights; 0 for dense models."""
    matrix_parameters: int
    """Parameters of the projections in attention and feed-forward layers, which engines can quantise."""
    predicted_layers: int
    prediction_weight_bytes: int
    """`predicted_layers`, `prediction_weight_bytes`: Layers for multi-token prediction, and their size in
    bytes without embeddings; 0 without them."""
    context_length: int
    """Tokens that the published configuration allows without changing the position encoding."""
    vision: Vision | None
    """The part that reads images; None for models that read only text."""
    answer_format: str | None
    """Name of the format of its answers. None if its publisher defines none."""
    gated: bool
    """Whether Hugging Face requires an accepted licence and a token."""
    licence: str
    """SPDX identifier, or the publisher's name of the licence."""
    source: str
    """Source of the architecture's numbers."""
    cached_layers: tuple[CachedLayers, ...]
    """What its layers cache, in groups of equal layers."""
    cache: CacheSettings = CacheSettings()
    """What it decides about its cache as a whole."""
    quantisation_method: str = ""
    """Tool or method that quantised the weights, as ``quant_method`` of the configuration names it, such as
    ``modelopt``; empty for weights in 16 bits, or if it is not known."""
    draft: Draft | None = None
    """How it depends on another model, for which it guesses tokens; None for models that can be served."""
    pipeline: Pipeline | None = None
    """The parts of a model that makes images, whose layers and heads are those of its transformer; None for
    models that write text."""

    def kv_bytes_per_token(
        self,
        kv_cache_dtype: str = "auto",
        tensor_parallel_size: int = 1,
        *,
        request_tokens: float | None = None,
    ) -> float:
        """Bytes of KV cache per token on one device.

        Grouped-query attention stores a key and a value for each KV head. A device holds its share of the
        heads, and at least one (vLLM replicates heads if there are fewer than devices). Latent attention
        stores one complete vector on every device. The indexer of sparse attention adds a key of one byte per
        value, with a scale of four bytes per 128 values.

        Layers with a sliding window keep the window of a request. Engines that do not free the rest, and
        requests shorter than the window, store every token in every layer.

        Parameters
        ----------
        kv_cache_dtype
            The engine's name of the type. ``auto`` means the two bytes of the activations.
        tensor_parallel_size
            Devices that share each layer.
        request_tokens
            Tokens of a request, if the engine frees what a window no longer sees. The result is the mean over
            these tokens. None if the engine frees nothing.

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
        layer = self._layer_bytes(KV_CACHE_BYTES[kv_cache_dtype], tensor_parallel_size)
        index = self.index_head_size + _SCALE_BYTES * math.ceil(self.index_head_size / _SCALE_BLOCK)
        return self._counted_layers(request_tokens) * layer + self.index_layers * index

    def stored_as(self, stored_type: str) -> Model:
        """Return the model with its projections in another type; itself if it is not published in 16 bits.

        Embeddings, norms, routers, the vision part and layers for multi-token prediction stay in 16 bits.

        Parameters
        ----------
        stored_type
            A key of ``STORED_TYPES``.
        """
        if self.weight_type != PLAIN.weight_type:
            return self
        scheme = STORED_TYPES[stored_type]
        saved = PLAIN.bytes_per_weight - scheme.bytes_per_weight
        return replace(
            self,
            name=f"{self.name} in {stored_type}",
            weight_type=scheme.weight_type,
            weight_block=scheme.block,
            weight_bytes=self.weight_bytes - math.floor(self.matrix_parameters * saved),
            expert_weight_bytes=math.ceil(
                self.expert_weight_bytes * scheme.bytes_per_weight / PLAIN.bytes_per_weight
            ),
        )

    def with_predictions(self) -> Model:
        """Return the model with its layers for multi-token prediction loaded."""
        return replace(
            self,
            layers=self.layers + self.predicted_layers,
            index_layers=self.index_layers + (self.predicted_layers if self.index_layers else 0),
            weight_bytes=self.weight_bytes + self.prediction_weight_bytes,
        )

    def _layer_bytes(self, value_bytes: float, tensor_parallel_size: int) -> float:
        """Return the bytes of a token in one layer.

        A sparse attention cache in FP8 keeps its positions in 16 bits and adds scales: 656 bytes for 512 + 64
        values (``v1/attention/backends/mla/flashmla_sparse.py`` of vLLM 0.31.0).
        """
        if self.attention == "gqa":
            return 2 * self.head_size * max(1, -(-self.kv_heads // tensor_parallel_size)) * value_bytes
        if self.index_head_size and value_bytes < _ACTIVATION_BYTES:
            compressed = self.kv_latent_size - _POSITION_VALUES
            scales = _SCALE_BYTES * math.ceil(compressed / _SCALE_BLOCK)
            return compressed * value_bytes + scales + _POSITION_VALUES * _ACTIVATION_BYTES
        return self.kv_latent_size * value_bytes

    def _counted_layers(self, request_tokens: float | None) -> float:
        """Return the layers that hold a token, as a mean over the tokens of a request.

        vLLM divides layers into groups of equal size, and the last group of each kind may have padding
        (``_get_kv_cache_groups_uniform_page_size`` in ``v1/core/kv_cache_utils.py`` of vLLM 0.31.0).
        """
        whole = self.layers - self.window_layers
        if request_tokens is None or not self.window_layers:
            return self.layers
        kept = min(1.0, (self.window + _WINDOW_BLOCK) / request_tokens)
        if kept == 1 or not whole:
            return whole + kept * self.window_layers
        few, many = sorted((whole, self.window_layers))
        group = many if many < _UNEVEN * few else few
        padded = [math.ceil(count / group) * group for count in (whole, self.window_layers)]
        return min(float(self.layers), padded[0] + kept * padded[1])
