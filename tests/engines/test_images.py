"""Images in requests at real `vllm serve` workers, with the arguments of the shipped blueprint."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint
from tests.engines.running import running_engines

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

MODEL = "qwen3-vl-8b"
#: Pixels of a token in each direction: `patch_size` times `merge_size` of the image processor.
_TOKEN_PIXELS = 32
#: The blueprint's `tokensPerImage` and `imagesPerRequest`.
_MAX_TOKENS = 1024
_MAX_IMAGES = 4


def png(side: int, red: int = 0) -> dict[str, Any]:
    """Return the part of a message with a square image of one colour (PNG specification, section 11.2)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = (b"\0" + bytes([red, 0, 0]) * side) * side
    file = b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*each) for each in ((b"IHDR", header), (b"IDAT", zlib.compress(pixels)), (b"IEND", b""))
    )
    return at(f"data:image/png;base64,{base64.b64encode(file).decode()}")


def at(address: str) -> dict[str, Any]:
    """Return the part of a message with the image of an address."""
    return {"type": "image_url", "image_url": {"url": address}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    document = load_blueprint("multimodal").blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0]["deployments"][0]["aggregated"]["replicas"] = 1
    blueprint = Blueprint.model_validate(document)
    with running_engines(blueprint, tmp_path_factory.mktemp("run")) as running:
        [endpoint] = running.endpoints
        with openai.OpenAI(base_url=endpoint.base_url, api_key="none", timeout=600, max_retries=0) as opened:
            yield opened


def prompt_tokens(client: openai.OpenAI, *images: dict[str, Any]) -> int:
    """Send a question with images, and return the tokens of its prompt."""
    content: Any = [{"type": "text", "text": "What is it?"}, *images]
    messages: Any = [{"role": "user", "content": content}]
    answer = client.chat.completions.create(
        model=MODEL, messages=messages, max_tokens=4, temperature=0, extra_body={"ignore_eos": True}
    )
    assert answer.usage
    assert answer.usage.completion_tokens == 4
    return answer.usage.prompt_tokens


@pytest.mark.parametrize("side", [256, 512])
def test_an_image_in_a_request_is_read(client: openai.OpenAI, side: int) -> None:
    """An image inside a request gets as many tokens of the prompt as its size needs, and an answer."""
    marks = 2  # before and after the image
    expected = (side // _TOKEN_PIXELS) ** 2 + marks
    assert prompt_tokens(client, png(side)) - prompt_tokens(client) == expected


def test_a_large_image_is_scaled_down(client: openai.OpenAI) -> None:
    """An image of four megapixels gets no more tokens than the blueprint allows."""
    tokens = prompt_tokens(client, png(2048)) - prompt_tokens(client)
    assert _MAX_TOKENS // 2 < tokens <= _MAX_TOKENS + 2


def test_several_images_are_read(client: openai.OpenAI) -> None:
    """As many images as the blueprint allows are read in one request."""
    one = prompt_tokens(client, png(256)) - prompt_tokens(client)
    images = [png(256, red) for red in range(_MAX_IMAGES)]
    assert prompt_tokens(client, *images) - prompt_tokens(client) == _MAX_IMAGES * one


@pytest.mark.parametrize(
    "images",
    [
        [png(256)] * (_MAX_IMAGES + 1),
        [at("https://elsewhere.example.com/image.png")],
        [at("http://169.254.169.254/latest/meta-data/")],
        [at("data:image/png;base64,AAAA")],
    ],
    ids=["too many", "another host", "the node's metadata", "no image"],
)
def test_other_images_are_refused(client: openai.OpenAI, images: list[dict[str, Any]]) -> None:
    """Too many images, an image of a host that is not listed, and what is no image get 400."""
    with pytest.raises(openai.BadRequestError):
        prompt_tokens(client, *images)
