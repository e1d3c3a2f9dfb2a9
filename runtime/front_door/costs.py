"""What a request can cost at most, and what it has cost. Money is in nano-dollars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from front_door.asked_request import AskedRequest
from inference_contracts.door_configuration import DoorModel, DoorPrices

#: Tokens that a chat template adds to a prompt: the system prompts of Llama 3.3 and gpt-oss have under 100.
TEMPLATE_TOKENS: Final = 256
IMAGE_PATHS: Final = ("/v1/images/",)
SEVERAL_PROMPTS: Final = "/v1/completions"
_NO_OUTPUT: Final = ("/v1/embeddings", "/v1/rerank", "/v1/score", "/v1/classify")


@dataclass(frozen=True, slots=True)
class CostBound:
    """The most that a request can use."""

    input_tokens: int
    output_tokens: int
    images: int
    """Images that it wants."""

    def nano(self, prices: DoorPrices) -> int:
        """Return the cost."""
        tokens = self.input_tokens * prices.input_token + self.output_tokens * prices.output_token
        return tokens + self.images * prices.image

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answers."""
        return self.input_tokens + self.output_tokens


def bound_of(request: AskedRequest, model: DoorModel) -> CostBound:
    """Return the most that a request can use.

    A token has at least one byte, so the length of the body bounds the tokens of text. An image in the body
    counts as the model counts it, and never by the bytes of its base64; a model that reads no images may get
    them as text. The context of the model bounds both, of each prompt of a completion.
    """
    if request.path.startswith(IMAGE_PATHS):
        return CostBound(min(request.bytes, model.context_length), 0, request.choices)
    text = request.bytes + TEMPLATE_TOKENS + request.images * model.image_tokens
    if not model.image_tokens:
        text += request.media_bytes
    # A stored conversation adds its former turns, which nobody here has seen.
    prompts = request.choices if request.path.startswith(SEVERAL_PROMPTS) else 1
    prompt = model.context_length if request.is_stored else min(text, model.context_length * prompts)
    if request.path.startswith(_NO_OUTPUT):
        # Each of several inputs has the whole context, so only the length of the body bounds them.
        return CostBound(text, 0, 0)
    wanted = model.default_output_tokens if request.output_tokens is None else request.output_tokens
    return CostBound(prompt, min(wanted, model.context_length) * request.choices, 0)
