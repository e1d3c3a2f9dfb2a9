"""Checks a line with a request and reports all its problems, before any money is spent.

The format is that of the OpenAI Batch API
(https://platform.openai.com/docs/api-reference/batch/request-input).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from batch.contracts.generated_image import read_size
from batch.contracts.request import JobRequest
from batch.preparation.estimate import (
    image_request_tokens,
    input_tokens,
    most_input_tokens,
    output_tokens,
    parts,
)
from batch.preparation.json_values import read_json
from inference_contracts.batch_body_fields import BODY_FIELDS, IMAGES_PATH, PART_TYPES
from inference_contracts.batch_limits import (
    DEFAULT_IMAGE_SIDE,
    IMAGES_PER_REQUEST,
    PIXELS_PER_REQUEST,
)
from inference_contracts.request_limits import RequestLimits, body_faults

# Checks a request for images: the rules of vllm-omni, and those of a batch.
#
# vllm-omni 0.30.0 states its rules in `ImageGenerationRequest` of `entrypoints/openai/protocol/images.py`,
# and those of a size in `parse_size` of `entrypoints/openai/image_api_utils.py`.

#: Lowest and highest value of a number, and whether it must be whole.
_NUMBERS: Final[Mapping[str, tuple[float, float, bool]]] = {
    "n": (1, IMAGES_PER_REQUEST, True),
    "num_inference_steps": (1, 200, True),
    "guidance_scale": (0, 20, False),
    "true_cfg_scale": (0, 20, False),
    "flow_shift": (float("-inf"), float("inf"), False),
    "output_compression": (0, 100, True),
    "seed": (-(2**63), 2**63 - 1, True),
}
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    # An address of the server would be gone when the job ends, and a file is not JSON.
    "response_format": ("b64_json",),
    "output_format": ("png", "jpeg", "webp"),
    "use_system_prompt": (
        *("custom", "dynamic", "en_recaption", "en_think_recaption", "en_unified", "en_vanilla"),
    ),
}
_TEXTS: Final = ("bot_task", "negative_prompt", "safety_identifier", "system_prompt", "user")


def image_request_faults(body: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over the problems of the parameters of a request for images.

    body: The body, or the parameters of a template.
    """
    given = {name: value for name, value in body.items() if value is not None}
    for name, (minimum, maximum, whole) in _NUMBERS.items():
        if name in given and not _fits(given[name], minimum, maximum, whole=whole):
            kind = "a whole number" if whole else "a number"
            span = f" from {minimum:,} to {maximum:,}" if maximum < float("inf") else ""
            yield f"body.{name}: must be {kind}{span}; got {show_value(given[name])}"
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            yield f"body.{name}: must be one of {', '.join(choices)}; got {show_value(given[name])}"
    for name in _TEXTS:
        if name in given and not isinstance(given[name], str):
            yield f"body.{name}: must be a string; got {show_value(given[name])}"
    yield from _size_faults(given)


def _size_faults(given: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over the problems of the size, and of the pixels of all images together."""
    size = read_size(given.get("size"))
    if "size" in given and size is None:
        yield f"body.size: must be WIDTHxHEIGHT, such as 1024x1024; got {show_value(given['size'])}"
        return
    width, height = size or (DEFAULT_IMAGE_SIDE, DEFAULT_IMAGE_SIDE)
    count = given.get("n", 1)
    if _fits(count, 1, IMAGES_PER_REQUEST, whole=True) and count * width * height > PIXELS_PER_REQUEST:
        yield (
            f"body.size: {count} images of {width}x{height} have {count * width * height:,} pixels; a line "
            f"may have {PIXELS_PER_REQUEST:,}: choose a smaller size, or several lines with a smaller n"
        )


def _fits(value: object, minimum: float, maximum: float, *, whole: bool) -> bool:
    """Return whether a value is a number in a range."""
    kinds = (int,) if whole else (int, float)
    return type(value) in kinds and isinstance(value, int | float) and minimum <= value <= maximum


def show_value(value: object) -> str:
    """Return a value, shortened for a message."""
    text = json.dumps(value, ensure_ascii=False) if value is not None else "nothing"
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - a line of a message


_LONGEST_ID = 512
_KEYS = {"custom_id", "method", "url", "body"}
#: Body field with the prompt or input, by API path.
_QUESTIONS: Mapping[str, str] = {
    "/v1/chat/completions": "messages",
    "/v1/completions": "prompt",
    "/v1/embeddings": "input",
    IMAGES_PATH: "prompt",
}
_MAX_ANSWERS = 128
#: Largest numbers of the fields that decide the price of a line.
_WHOLE_NUMBERS: Mapping[str, int] = {
    "max_tokens": 10_000_000,
    "max_completion_tokens": 10_000_000,
    "n": _MAX_ANSWERS,
    "best_of": _MAX_ANSWERS,
}
_BEGINNING = 1024
# Without it, vllm-omni 0.30.0 computes 50 steps of an image, whatever the model was made for
# (`entrypoints/openai/stage_params.py`).
_STEPS = "num_inference_steps"


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """A valid line."""

    custom_id: str
    """The team's name for the line."""
    input_tokens: int
    """Estimated tokens of the prompt."""
    output_tokens: int
    """Most tokens of the answers."""
    beginning: str
    """Start of the prompt. Requests with the same start share KV cache."""
    body: Mapping[str, Any]
    """The request's body."""
    images: tuple[str, ...] = ()
    """Addresses in S3 of images that the worker puts before the prompt."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """An invalid line."""

    custom_id: str | None
    """The team's name for the line, if it has one."""
    reasons: tuple[str, ...]
    """Problems, each with the allowed values."""


def check_request(
    content: bytes, request: JobRequest, limits: RequestLimits | None = None
) -> CheckedLine | BadLine:
    """Check a line with a request.

    limits: Limits of the model's requests; None if its engine has none.
    """
    line = read_object(content, f"with {', '.join(sorted(_KEYS))}")
    if isinstance(line, BadLine):
        return line
    custom_id = line.get("custom_id")
    body = line.get("body")
    reasons = [*_envelope_faults(line, request), *_body_faults(body, request), *limit_faults(body, limits)]
    if reasons or not isinstance(body, dict):
        return BadLine(custom_id if isinstance(custom_id, str) else None, tuple(reasons))
    return checked(str(custom_id), body, request)


def read_object(content: bytes, of: str) -> dict[str, Any] | BadLine:
    """Read a line that contains a JSON object.

    of: Description of the object's expected fields, for the message.
    """
    try:
        value = read_json(content)
    except ValueError as error:
        return BadLine(None, (f"not JSON in UTF-8: {error}",))
    if not isinstance(value, dict):
        return BadLine(None, (f"must be an object {of}; got {type(value).__name__}",))
    return value


def checked(
    custom_id: str, body: Mapping[str, Any], request: JobRequest, *, images: tuple[str, ...] = ()
) -> CheckedLine | BadLine:
    """Return a line of valid form, unless it has more tokens than the model accepts.

    custom_id: The team's name for the line.
    images: Addresses of images that the body does not contain.
    """
    if request.endpoint == IMAGES_PATH:
        asked, answered = image_request_tokens(body)
        if request.image_steps and body.get(_STEPS) is None:
            body = {**body, _STEPS: request.image_steps}
        return CheckedLine(custom_id, asked, answered, body["prompt"][:_BEGINNING], body)
    asked = input_tokens(body, image_tokens=request.image_tokens) + len(images) * request.image_tokens
    answered = output_tokens(body, default=request.default_output_tokens)
    longest = request.limits.request_tokens
    if asked + answered > longest:
        reason = f"about {asked:,} input tokens and up to {answered:,} of output; the maximum is {longest:,}"
        return BadLine(custom_id, (reason,))
    added = len(images) * request.image_tokens
    room = longest - answered - added
    most = most_input_tokens(body, image_tokens=request.image_tokens, enough=room)
    if most > room:
        reason = (
            f"about {asked:,} input tokens, but up to {most + added:,} with the scripts and numbers of its "
            f"text, and up to {answered:,} of output; the maximum is {longest:,}"
        )
        return BadLine(custom_id, (reason,))
    beginning = next((value for kind, value in parts(body) if kind == "text"), "")
    return CheckedLine(custom_id, asked, answered, beginning[:_BEGINNING], body, images)


def id_faults(custom_id: object) -> Iterator[str]:
    """Iterate over the problems of a custom_id."""
    if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= _LONGEST_ID:
        yield f"custom_id: must be a string of 1 to {_LONGEST_ID} characters; got {show_value(custom_id)}"
    elif not custom_id.isprintable():
        yield f"custom_id: must have only printable characters; got {show_value(custom_id)}"


def _envelope_faults(line: Mapping[str, Any], request: JobRequest) -> Iterator[str]:
    """Iterate over the problems of the fields around the body."""
    yield from id_faults(line.get("custom_id"))
    if line.get("method") != "POST":
        yield f"method: must be POST; got {show_value(line.get('method'))}"
    if line.get("url") != request.endpoint:
        yield f"url: must be the job's endpoint {request.endpoint}; got {show_value(line.get('url'))}"
    for key in sorted(set(line) - _KEYS):
        yield f"{key[:64]}: not a field of a request; those are {', '.join(sorted(_KEYS))}"


def _body_faults(body: object, request: JobRequest) -> Iterator[str]:
    """Iterate over the problems of the body."""
    if not isinstance(body, dict):
        yield f"body: must be an object; got {show_value(body)}"
        return
    asked = body.get("model")
    if asked != request.model and not (request.public_name and asked == request.public_name):
        public = f" or {request.public_name!r}" if request.public_name else ""
        yield f"body.model: must be the job's model {request.model!r}{public}; got {show_value(asked)}"
    yield from parameter_faults(body, request.endpoint)
    question = _QUESTIONS[request.endpoint]
    asked = body.get(question)
    if question == "messages":
        yield from _message_faults(asked)
    elif request.endpoint == IMAGES_PATH:
        if not asked or not isinstance(asked, str):
            yield f"body.prompt: must be a string, not empty; got {show_value(asked)}"
    elif not asked or not isinstance(asked, str | list):
        yield f"body.{question}: must be a string or a list of strings, not empty; got {show_value(asked)}"
    for kind, value in parts(body):
        if kind == "image":
            yield from _image_faults(value)


def parameter_faults(body: Mapping[str, Any], endpoint: str) -> Iterator[str]:
    """Iterate over unknown fields, and over the problems of the parameters that decide the price.

    body: The body, or the parameters of a template.
    endpoint: API path of the request.
    """
    allowed = BODY_FIELDS[endpoint]
    for field in sorted(set(body) - allowed):
        names = ", ".join(sorted(allowed))
        yield f"body.{field[:64]}: not a field that {endpoint} accepts here; those are {names}"
    if endpoint == IMAGES_PATH:
        yield from image_request_faults(body)
        return
    if body.get("stream"):
        yield "body.stream: a batch is not streamed; leave it out"
    for field, maximum in _WHOLE_NUMBERS.items():
        value = body.get(field)
        if value is not None and (type(value) is not int or not 1 <= value <= maximum):
            yield f"body.{field}: must be a whole number from 1 to {maximum:,}; got {show_value(value)}"


def limit_faults(body: object, limits: RequestLimits | None) -> Iterator[str]:
    """Iterate over the fields of a body that would end the engine, or that it would compile for minutes."""
    if limits is None or not isinstance(body, dict):
        return
    for fault in body_faults(body, limits):
        if fault.param not in _WHOLE_NUMBERS:
            yield f"body.{fault.message}" if fault.param else fault.message


def _message_faults(messages: object) -> Iterator[str]:
    """Iterate over the problems of the messages."""
    if not isinstance(messages, list) or not messages:
        yield f"body.messages: must be a list of messages, not empty; got {show_value(messages)}"
        return
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            yield f"body.messages[{place}]: must be an object with a role; got {show_value(message)}"
            continue
        content = message.get("content")
        for number, part in enumerate(content if isinstance(content, list) else ()):
            kind = part.get("type") if isinstance(part, dict) else part
            if kind not in PART_TYPES:
                allowed = ", ".join(PART_TYPES)
                where = f"body.messages[{place}].content[{number}].type"
                yield f"{where}: must be one of {allowed}; got {show_value(kind)}"


def _image_faults(address: str) -> Iterator[str]:
    """Iterate over the problems of an image address. Engines do not load images from S3."""
    if not address.startswith("data:"):
        named = repr(address[:200])
        yield f"image {named}: must be a data: URL; for images in S3, use a template with imageFields"
