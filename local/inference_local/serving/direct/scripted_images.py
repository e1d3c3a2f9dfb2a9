"""Images in place of those of a model that this machine cannot run: bands of colours from prompt and seed.

Requests are checked as vllm-omni 0.30.0 checks them, in `vllm_omni/entrypoints/openai`:
`ImageGenerationRequest` of `protocol/images.py`, `parse_size` of `image_api_utils.py`, and `generate_images`
of `api_server.py`. Errors have the form of vLLM's handlers
(`vllm/entrypoints/serve/exception_handling/handlers`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from inference_contracts.image_files import PNG

_BANDS: Final = 8
_BYTES_PER_PIXEL: Final = 3
#: Truecolour of 8 bits, with the only compression and filter method, not interlaced
#: (https://www.w3.org/TR/png-3/#11IHDR).
_TRUECOLOUR: Final = (8, 2, 0, 0, 0)
_DEFAULT_SIDE: Final = 1024
_FORM: Final = "'WIDTHxHEIGHT' (e.g., '1024x1024')"


def _with_x(value: str | None) -> str | None:
    if value is not None and "x" not in value:
        raise ValueError(f"size must be in format {_FORM}")
    return value


def _is_returned(value: str) -> str:
    if value == "url":
        raise ValueError("Only 'b64_json' or 'file' response format is supported, got: ResponseFormat.URL")
    return value


class ImageRequest(BaseModel):
    """A request for images. Other fields are ignored, as vllm-omni ignores those that it does not know."""

    prompt: str
    model: str | None = None
    n: int = Field(default=1, ge=1, le=10)
    size: Annotated[str | None, AfterValidator(_with_x)] = None
    response_format: Annotated[Literal["b64_json", "url", "file"], AfterValidator(_is_returned)] = "b64_json"
    num_inference_steps: int | None = Field(default=None, ge=1, le=200)
    guidance_scale: float | None = Field(default=None, ge=0.0, le=20.0)
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    output_format: str | None = None


class ImageRequestError(Exception):
    """A refused request.

    message, param: What is wrong, and the field; None if no single field is.
    """

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param

    @property
    def body(self) -> Mapping[str, Any]:
        """The answer, with status 400."""
        status = HTTPStatus.BAD_REQUEST
        error = {"message": str(self), "type": status.phrase, "param": self.param, "code": status.value}
        return {"error": error}


def read_image_request(content: bytes, *, model: str, most_pixels: int | None) -> ImageRequest:
    """Read and check a request.

    model: Name of the only model.
    most_pixels: Most pixels of an image; None without a limit.
    Raises ImageRequestError if the server refuses it.
    """
    try:
        asked = ImageRequest.model_validate_json(content)
    except ValidationError as error:
        raise _invalid(error) from error
    if asked.model not in (None, model):
        message = f"Model mismatch: request specifies '{asked.model}' but server is running '{model}'."
        raise ImageRequestError(message)
    width, height = image_size(asked)
    if most_pixels is not None and width * height > most_pixels:
        raise ImageRequestError(
            f"Requested image size {width}x{height} exceeds the maximum allowed size of {most_pixels} "
            "pixels. You can reduce the requested size or increase the server's "
            "--max-generated-image-size limit."
        )
    if asked.response_format != "b64_json" or asked.output_format not in (None, "png"):
        raise ImageRequestError(
            "this scripted server makes only PNG in b64_json; vLLM-Omni itself makes others"
        )
    return asked


def image_size(asked: ImageRequest) -> tuple[int, int]:
    """Return width and height of the images.

    Raises ImageRequestError if the size is not two whole numbers above 0.
    """
    if asked.size is None:
        return _DEFAULT_SIDE, _DEFAULT_SIDE
    parts = asked.size.split("x")
    if len(parts) != len(("width", "height")):
        raise ImageRequestError(
            f"Invalid size format: '{asked.size}'. Expected format: {_FORM}. "
            "Did you mean to use 'x' as separator?"
        )
    try:
        width, height = map(int, parts)
    except ValueError:
        message = f"Invalid size format: '{asked.size}'. Width and height must be integers."
        raise ImageRequestError(message) from None
    if width <= 0 or height <= 0:
        raise ImageRequestError(
            f"Invalid size: {width}x{height}. Width and height must be positive integers."
        )
    return width, height


def image_answer(asked: ImageRequest) -> Mapping[str, Any]:
    """Return the answer to a request: the same images for the same prompt, seed and size."""
    width, height = image_size(asked)
    images = (scripted_png(width, height, asked.prompt, asked.seed, number) for number in range(asked.n))
    return {
        "created": int(time.time()),
        "data": [
            {"b64_json": base64.b64encode(image).decode(), "url": None, "revised_prompt": None}
            for image in images
        ],
        "output_format": "png",
        "size": f"{width}x{height}",
    }


def scripted_png(width: int, height: int, prompt: str, seed: int | None, number: int) -> bytes:
    """Return a PNG file of horizontal bands, whose colours follow from prompt, seed and number.

    seed: The request's seed; None counts as 0.
    number: Index of the image in the answer.
    """
    digest = hashlib.sha256(json.dumps([prompt, seed or 0, number]).encode()).digest()
    colours = [digest[band * _BYTES_PER_PIXEL :][:_BYTES_PER_PIXEL] for band in range(_BANDS)]
    rows = (b"\0" + colours[row * _BANDS // height] * width for row in range(height))
    return b"".join(
        (
            PNG,
            _chunk(b"IHDR", struct.pack(">II5B", width, height, *_TRUECOLOUR)),
            _chunk(b"IDAT", zlib.compress(b"".join(rows))),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk: length, kind, content, and checksum of the last two."""
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def _invalid(error: ValidationError) -> ImageRequestError:
    """Return what vLLM says about a body that does not fit: the place and the reason of each problem."""
    problems = error.errors(include_url=False, include_context=False)
    label = "error" if len(problems) == 1 else "errors"
    lines = (f"  {_place(each['loc'])}: {each['msg']}" for each in problems)
    message = "\n".join((f"{len(problems)} validation {label}:", *lines))
    return ImageRequestError(message, _place(problems[0]["loc"]))


def _place(parts: Sequence[int | str]) -> str:
    return ".".join(map(str, ("body", *parts)))
