"""Properties of a model that are known before it is downloaded."""

from __future__ import annotations

import math
import string
from dataclasses import replace
from typing import Any, Literal

from inference_catalog.cache_rules import KV_CACHE_BYTES, CacheUse, token_bytes
from inference_catalog.cached_layers import CachedLayers, CacheSettings, with_further_layers
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


@dataclass(frozen=True, slots=True)
class ExpertPadding:
    """How an engine pads what a device holds of an expert."""

    hidden: int = 1
    width: int = 1
    """`hidden`, `width`: Values to whose multiple it rounds the hidden size and the width of the part."""
    least_width: int = 0
    """Least width of a part if devices divide an expert."""


@dataclass(frozen=True, slots=True)
class LessDivided:
    """Weights that tensor parallelism divides into no more parts than a number; other devices hold copies."""

    parts: int
    """The number: 1 for what every device holds whole, such as norms, routers and projections to latents; KV
    heads for projections to them; groups of Mamba 2."""
    matrix_bytes: int
    other_bytes: int = 0
    """`matrix_bytes`, `other_bytes`: Size of the projections, which engines can quantise, and of the
    others."""

    @property
    def bytes(self) -> int:
        """Size of all of them on one device that holds them whole."""
        return self.matrix_bytes + self.other_bytes


@dataclass(frozen=True, slots=True)
class LayerType:
    """One kind of layer of a model: what each layer of it holds."""

    weight_bytes: int
    """Size of its weights."""
    cached: tuple[int, ...] = ()
    """What it caches: numbers of the groups in ``Model.cached_layers``, from 0."""
    expert_weight_bytes: int = 0
    shared_expert_bytes: int = 0
    matrix_parameters: int = 0
    less_divided: tuple[LessDivided, ...] = ()
    """`expert_weight_bytes`, `shared_expert_bytes`, `matrix_parameters`, `less_divided`: As those of
    ``Model``, of one layer."""


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
    less_divided: tuple[LessDivided, ...] = ()
    """Weights that many devices do not divide further, by the most parts."""
    layer_types: tuple[LayerType, ...] = ()
    layer_order: str = ""
    """`layer_types`, `layer_order`: Its kinds of layers, and the kind of each layer from the first to the
    last: ``a`` is the first kind, ``b`` the second (``LAYER_LETTERS``). Empty if the order is not known."""
    output_bytes: int = 0
    """Size of the output layer; 0 if it is the embedding."""
    cached_elsewhere: tuple[CachedLayers, ...] = ()
    """What other stages of a pipeline cache, if this is one of them."""
    shared_expert_bytes: int = 0
    """Size of shared experts, and of other networks that vLLM holds whole with them
    (``weight_rules.holds_shared_experts_whole``); 0 if it divides them."""
    least_expert_part: int = 0
    """Width to which vLLM pads a device's part of an expert that is divided; 0 if it does not."""
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

    @property
    def index_layers(self) -> int:
        """Layers whose indexer of sparse latent attention caches keys; 0 without one."""
        if not any(each.packed_bytes for each in self.cached_layers):
            return 0
        return sum(each.count for each in self.cached_layers if each.kind == "latent" and not each.own)

    @property
    def window(self) -> int:
        """Tokens that layers with a sliding window see; 0 without such layers."""
        return max((each.window for each in self._windows), default=0)

    @property
    def window_layers(self) -> int:
        """Layers with a sliding window."""
        return sum(each.count for each in self._windows)

    @property
    def _windows(self) -> tuple[CachedLayers, ...]:
        return tuple(each for each in self.cached_layers if each.kind == "window" and each.own)

    def kv_bytes_per_token(self, kv_cache_dtype: str = "auto", tensor_parallel_size: int = 1) -> float:
        """Bytes of KV cache that each further token takes on one device if nothing is freed.

        Parameters
        ----------
        kv_cache_dtype
            The engine's name of the type. ``auto`` means that of the checkpoint, or 16 bits.
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
        return token_bytes(self, CacheUse(tensor_parallel_size=tensor_parallel_size, kv_type=kv_cache_dtype))

    def rank_weight_bytes(
        self,
        tensor_parallel_size: int = 1,
        data_parallel_size: int = 1,
        padding: ExpertPadding | None = None,
        *,
        whole_experts: bool = False,
        whole_shared_experts: bool = False,
    ) -> float:
        """Bytes of weights on one device.

        ::

            experts  = routed experts, rounded up to whole tiles of the kernel, / (TP * DP);
                       whole experts are rounded up to a number of them
            limited  = each of `less_divided` / its most parts, or / TP if that is less
            shared   = shared experts / TP, or whole
            others   = everything else / TP

        Parameters
        ----------
        tensor_parallel_size
            Devices that share each layer (TP).
        data_parallel_size
            Ranks that share the experts (DP).
        padding
            How the engine pads experts (``expert_padding`` in ``weight_rules``); None if it does not.
        whole_experts
            Whether a device holds whole experts, as with expert parallelism, instead of a part of each.
        whole_shared_experts
            Whether each device holds shared experts whole (``holds_shared_experts_whole`` in
            ``weight_rules``).
        """
        size = tensor_parallel_size
        parts = 1 if whole_experts else size * data_parallel_size
        own = self.feed_forward_size / parts
        tiles = 1.0
        if self.experts and padding:
            width = max(own, padding.least_width if parts > 1 else 0)
            padded = _multiple(self.hidden_size, padding.hidden) * _multiple(width, padding.width)
            tiles = padded / (self.hidden_size * own)
        ranks = size * data_parallel_size
        share = 1 / ranks
        if whole_experts and self.experts:
            share = math.ceil(self.experts / ranks) / self.experts
        experts = tiles * self.expert_weight_bytes * share
        limited = sum(each.bytes / min(size, each.parts) for each in self.less_divided)
        shared = self.shared_expert_bytes / (1 if whole_shared_experts else size)
        counted = self.expert_weight_bytes + self.shared_expert_bytes
        others = self.weight_bytes - counted - sum(each.bytes for each in self.less_divided)
        return others / size + limited + shared + experts

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
        kept = scheme.bytes_per_weight / PLAIN.bytes_per_weight
        return replace(
            self,
            name=f"{self.name} in {stored_type}",
            weight_type=scheme.weight_type,
            weight_block=scheme.block,
            layer_types=tuple(replace(each, **_stored(each, kept)) for each in self.layer_types),
            **_stored(self, kept),
        )

    def with_predictions(self) -> Model:
        """Return the model with its layers for multi-token prediction loaded."""
        return replace(
            self,
            layers=self.layers + self.predicted_layers,
            cached_layers=with_further_layers(self.cached_layers, self.predicted_layers),
            weight_bytes=self.weight_bytes + self.prediction_weight_bytes,
        )

    def with_draft(self, draft: Model, *, cached_alike: bool) -> Model:
        """Return the model with the layers of a draft beside its own.

        Parameters
        ----------
        draft
            A model that guesses for this one.
        cached_alike
            Whether the engine keeps for each layer of the draft what it keeps for a layer of the model.
        """
        further = (*self.cached_layers, *draft.cached_layers)
        return replace(
            self,
            layers=self.layers + draft.layers,
            cached_layers=with_further_layers(self.cached_layers, draft.layers) if cached_alike else further,
            weight_bytes=self.weight_bytes + draft.weight_bytes,
            less_divided=(*self.less_divided, *draft.less_divided),
        )


#: Letters of ``Model.layer_order``.
LAYER_LETTERS = string.ascii_letters


def _stored(weights: Model | LayerType, kept: float) -> dict[str, Any]:
    """Return the sizes of weights whose projections keep a part of their bytes."""
    saved = PLAIN.bytes_per_weight * (1 - kept)
    return {
        "weight_bytes": weights.weight_bytes - math.floor(weights.matrix_parameters * saved),
        "expert_weight_bytes": math.ceil(weights.expert_weight_bytes * kept),
        "shared_expert_bytes": math.ceil(weights.shared_expert_bytes * kept),
        "less_divided": tuple(
            replace(each, matrix_bytes=math.ceil(each.matrix_bytes * kept)) for each in weights.less_divided
        ),
    }


def _multiple(number: float, of: int) -> int:
    """Round up to a multiple."""
    return math.ceil(number / of) * of
