"""Images in prompts."""

from typing import Annotated

from pydantic import Field

from inference_blueprints.spec import formats
from inference_blueprints.spec.section import Domain, Form, Section


class Media(Section):
    """Images in requests. Without this section, the model reads only text."""

    images_per_request: int = Field(ge=1, le=1_000)
    """Maximum number of images per request."""
    # Qwen3-VL scales smaller images up to this number.
    tokens_per_image: int = Field(ge=64, le=1_000_000)
    """Maximum number of tokens per image. Larger images are scaled down."""
    allowed_domains: list[Domain] = Field(default_factory=list, max_length=100)
    """Full names of the hosts from which images are fetched. Without it, requests must contain the images."""


ImageSize = Annotated[str, Form(formats.IMAGE_SIZE)]


class ImageRequests(Section):
    """Images that requests ask for, in place of tokens. Required with `task: images`, and only there."""

    # ``ImageGenerationRequest`` in ``vllm_omni/entrypoints/openai/protocol/images.py`` of vllm-omni 0.30.0
    # accepts the same ranges.
    per_request: int = Field(default=1, ge=1, le=10)
    """Most images of one request (`n` in the API). Memory is planned for them."""
    size: ImageSize
    """Largest width and height of an image in pixels, such as `1024x1024`. The server refuses images with
    more pixels."""
    steps: int = Field(ge=1, le=200)
    """Steps of an image, which each request has to name (`num_inference_steps`): vLLM-Omni knows no default
    of the platform, and takes 50 for Z-Image. Time grows with them; memory does not."""

    @property
    def width(self) -> int:
        """Width of the largest image in pixels."""
        return int(self.size.partition("x")[0])

    @property
    def height(self) -> int:
        """Height of the largest image in pixels."""
        return int(self.size.partition("x")[2])

    @property
    def pixels(self) -> int:
        """Pixels of the largest image."""
        return self.width * self.height
