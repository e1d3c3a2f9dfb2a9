"""Images in prompts."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Domain, Section


class Media(Section):
    """Images in requests. Without this section, the model reads only text."""

    images_per_request: int = Field(ge=1, le=1_000)
    """Maximum number of images per request."""
    # Qwen3-VL scales smaller images up to this number.
    tokens_per_image: int = Field(ge=64, le=1_000_000)
    """Maximum number of tokens per image. Larger images are scaled down."""
    allowed_domains: list[Domain] = Field(default_factory=list, max_length=100)
    """Full names of the hosts from which images are fetched. Without it, requests must contain the images."""
