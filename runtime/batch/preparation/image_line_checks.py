"""Checks a request for images: the rules of vllm-omni, and those of a batch.

vllm-omni 0.30.0 states its rules in `ImageGenerationRequest` of `entrypoints/openai/protocol/images.py`, and
those of a size in `parse_size` of `entrypoints/openai/image_api_utils.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from batch.contracts.generated_image import read_size
from inference_contracts.batch_limits import (
    DEFAULT_IMAGE_SIDE,
    IMAGES_PER_REQUEST,
    PIXELS_PER_REQUEST,
)

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
