"""Images that come with prompts."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Domain, Section


class Media(Section):
    """Images in requests; without this section a model reads text alone."""

    images_per_request: int = Field(ge=1, le=1_000)
    """Images of one request at the most."""
    # Qwen3-VL scales smaller images up to this many.
    tokens_per_image: int = Field(ge=64, le=1_000_000)
    """Tokens of one image at the most: larger images are scaled down."""
    allowed_domains: list[Domain] = Field(default_factory=list, max_length=100)
    """Hosts from which images may be fetched, by their whole names; else they come within requests alone."""
