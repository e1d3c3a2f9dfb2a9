"""Properties of the vision part of a model."""

from __future__ import annotations

from dataclasses import dataclass


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
