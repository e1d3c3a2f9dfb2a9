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


def bound_of(
    request: AskedRequest, model: DoorModel, context: int | None = None
) -> tuple[CostBound, int | None]:
    """Return the most that a request can use, and the maximum of an answer that Envoy writes into its body.

    A token has at least one byte, so the length of the body bounds the tokens of text. An image in the body
    counts as the model counts it, and never by the bytes of its base64; a model that reads no images may get
    them as text. The context of the target bounds both, of each prompt of a completion.

    Without a stated maximum, the model's default is written, if prompt and answer certainly fit the context:
    frontends and engines refuse a request whose maximum does not fit (ai-dynamo 1.6.1; `TokenizeParams` of
    ``vllm/renderers``, 0.31.0). Else nothing is written, and the answer ends where the context does: all take
    the rest of it then (``vllm/handlers.py``, ``trtllm/request_handlers/handler_base.py`` and
    ``sglang/request_handlers/llm/decode_handler.py`` of ai-dynamo 1.6.1).

    context: That of the target, which may be longer than that of another. None for that of the model.
    """
    context = context or model.context_length
    if request.path.startswith(IMAGE_PATHS):
        return CostBound(min(request.bytes, context), 0, request.choices), None
    text = request.bytes + TEMPLATE_TOKENS + request.images * model.image_tokens
    if not model.image_tokens:
        text += request.media_bytes
    if request.path.startswith(_NO_OUTPUT):
        # Each of several inputs has the whole context, so only the length of the body bounds them.
        return CostBound(text, 0, 0), None
    prompts = request.choices if request.path.startswith(SEVERAL_PROMPTS) else 1
    prompt = context * prompts
    if not request.is_stored:
        prompt = min(text, prompt)
    # A default that is the whole context was stated by nobody, and cuts no answer of a longer target.
    default, written = model.default_output_tokens, None
    if request.output_tokens is None and default < model.context_length and prompt + default <= context:
        written = default
    answer = min(request.output_tokens or written or context, context)
    return CostBound(prompt, answer * request.choices, 0), written
