"""Model classes whose parameters and KV cache can be counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a model class adds to the fields of its ``config.json``."""

    name: str
    """The class in ``architectures``, such as ``Qwen3ForCausalLM``."""
    source: str
    """Source of these facts."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of the fields that a ``config.json`` may leave out, as in the class of its configuration."""
    attention: Literal["gqa", "mla"] = "gqa"
    """``gqa``: keys and values per head; ``mla``: one latent vector per token."""
    bias: Literal["qkv", "qkvo"] = "qkvo"
    """Projections that have a bias if ``attention_bias`` is true."""
    windows: Literal["none", "all", "pattern", "late"] = "none"
    """Layers to which ``sliding_window`` applies if the file has no ``layer_types``: ``none``, ``all``, every
    layer except each ``sliding_window_pattern``-th (``pattern``), or those from ``max_window_layers`` on if
    ``use_sliding_window`` is true (``late``)."""
    feed_forward: str = "mlp"
    """Name of the feed-forward module in a layer of experts."""
    expert_bias: bool = False
    """Whether experts and their router have biases."""
    splits_by_image: bool = False
    scales_to_pixels: bool = False
    """`splits_by_image`, `scales_to_pixels`: As in ``Vision``."""
