"""What is known of the part of a model that reads images."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vision:
    """The vision transformer before a language model, and the projections between the two.

    Parameters
    ----------
    weight_bytes
        Size of both in bytes, as published; part of ``Model.weight_bytes``.
    hidden_size
        Numbers that stand for a patch of the image within it.
    patch_pixels
        Pixels of a patch.
    patches_per_token
        Patches that become one token of the prompt.
    tokens_per_image
        Tokens of every image; 0 where they follow from its size.
    embedding_size
        Numbers that a token brings into the language model, those for its deeper layers included.
    splits_by_image
        Whether engines can give devices whole images instead of a part of each layer
        (``supports_encoder_tp_data`` in vLLM's model, ``use_data_parallel`` in SGLang's).
    """

    weight_bytes: int
    hidden_size: int
    patch_pixels: int
    patches_per_token: int
    tokens_per_image: int
    embedding_size: int
    splits_by_image: bool

    @property
    def pixels_per_token(self) -> int:
        """Pixels of an image that become one token of the prompt."""
        return self.patch_pixels * self.patches_per_token
