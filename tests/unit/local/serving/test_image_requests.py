"""Images become the words that they count as, and what a real engine refuses is refused."""

import json
from typing import Any

import pytest

from inference_local.serving.image_requests import (
    TEXT_ALONE,
    ImageLimits,
    ImageRefusedError,
    with_images_as_words,
)

_CHAT = "/v1/chat/completions"
_LIMITS = ImageLimits(per_request=2, tokens=5, domains=("images.example.com",))
_ALLOWED = "https://images.example.com/a.png"
_WITHIN = "data:image/png;base64,AAAA"


def image(address: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": address}}


def chat(*parts: dict[str, Any] | str) -> bytes:
    """Return a request of one message of parts; a text is a part of text."""
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()


def content(body: bytes, messages: str = "messages") -> str:
    [message] = json.loads(body)[messages]
    assert isinstance(message["content"], str)
    return str(message["content"])


@pytest.mark.parametrize("address", [_ALLOWED, _WITHIN, "http://images.example.com:8080/a.png"])
def test_an_image_becomes_its_tokens_between_the_words_around_it(address: str) -> None:
    written = content(with_images_as_words(_CHAT, chat("what is", image(address), " this?"), _LIMITS))
    assert written.startswith("what is ")
    assert written.endswith(" this?")
    assert len(written.split()) == 2 + 5 + 1


def test_an_image_is_always_the_same_words_and_no_other_image_is() -> None:
    one, again, other = (
        content(with_images_as_words(_CHAT, chat(image(address)), _LIMITS))
        for address in (_ALLOWED, _ALLOWED, _WITHIN)
    )
    assert one == again != other


def test_the_responses_api_spells_images_its_own_way() -> None:
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": _ALLOWED}]
    body = json.dumps({"model": "m", "input": [{"role": "user", "content": parts}]}).encode()
    assert len(content(with_images_as_words("/v1/responses", body, _LIMITS), "input").split()) == 1 + 5


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://other.example.com/a.png", "https://other.example.com;"),
        ("https://images.example.com.evil.example/a.png", "images.example.com.evil.example"),
        ("https://images.example.com@evil.example/a.png", "https://evil.example;"),
        ("https://10.0.0.1/a.png", "from an allowed host: images.example.com"),
        ("file:///etc/passwd", "file://None"),
        ("data:text/html;base64,AAAA", "data://None"),
        ("https://[", "is not valid"),
        ("", "allowed host"),
    ],
)
def test_an_image_from_anywhere_else_is_refused(address: str, said: str) -> None:
    with pytest.raises(ImageRefusedError, match="image") as caught:
        with_images_as_words(_CHAT, chat("what is", image(address)), _LIMITS)
    assert said in str(caught.value)


def test_more_images_than_allowed_are_refused_across_messages() -> None:
    message = {"role": "user", "content": [image(_ALLOWED)]}
    body = json.dumps({"messages": [message] * 3}).encode()
    with pytest.raises(ImageRefusedError, match="at most 2 images"):
        with_images_as_words(_CHAT, body, _LIMITS)


def test_a_model_that_reads_text_alone_says_so() -> None:
    with pytest.raises(ImageRefusedError, match="accepts only text"):
        with_images_as_words(_CHAT, chat(image(_WITHIN)), TEXT_ALONE)


def test_a_film_beside_an_image_is_refused() -> None:
    film = {"type": "video_url", "video_url": {"url": _ALLOWED}}
    with pytest.raises(ImageRefusedError, match="'video_url' is neither"):
        with_images_as_words(_CHAT, chat(image(_WITHIN), film), _LIMITS)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'not json "image_url"',
        b'["image_url"]',
        b'{"messages": "image_url"}',
        b'{"messages": [1, {"content": "image_url"}, {"content": ["image_url"]}]}',
        chat("only text"),
        chat('of "image_url" it speaks'),
    ],
)
def test_what_holds_no_image_passes_as_it_came(body: bytes) -> None:
    assert with_images_as_words(_CHAT, body, TEXT_ALONE) == body
    assert with_images_as_words("/v1/embeddings", chat(image(_WITHIN)), TEXT_ALONE) == chat(image(_WITHIN))
