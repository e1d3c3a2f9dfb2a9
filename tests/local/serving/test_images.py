"""Requests with images, answered on this machine by the shipped blueprint for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionContentPartImageParam

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing

_WITHIN = "data:image/png;base64,AAAA"
_TOKENS = 1024


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[openai.OpenAI, str]]:
    """Return a client of the model that reads images, and what the table of parts says of its answers."""
    blueprint = load_blueprint("multimodal").blueprint
    directory: Path = tmp_path_factory.mktemp("images")
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, directory, processes) as serving,
    ):
        (endpoint,) = serving.start(lambda _: None)
        [words] = [part.detail for part in serving.parts() if part.name.startswith("Weights")]
        yield openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0), words
        serving.check()


def ask(client: openai.OpenAI, *addresses: str) -> Any:
    images: list[ChatCompletionContentPartImageParam] = [
        {"type": "image_url", "image_url": {"url": address}} for address in addresses
    ]
    return client.chat.completions.create(
        model="qwen3-vl-8b",
        max_tokens=3,
        messages=[{"role": "user", "content": [{"type": "text", "text": " bado bado"}, *images]}],
    )


def test_each_image_counts_the_tokens_that_it_may_have(reader: tuple[openai.OpenAI, str]) -> None:
    client, _ = reader
    none, one, two = (
        ask(client, *addresses).usage.prompt_tokens
        for addresses in ((), (_WITHIN,), (_WITHIN, "https://images.example.com/a.png"))
    )
    assert (one - none, two - none) == (_TOKENS, 2 * _TOKENS)


def test_an_image_that_was_seen_is_found_in_the_cache(reader: tuple[openai.OpenAI, str]) -> None:
    client, _ = reader
    seen = [ask(client, "https://scans.example.com/page-1.png").usage for _ in range(2)]
    cached = [usage.prompt_tokens_details.cached_tokens for usage in seen]
    assert cached[0] < 64
    assert cached[1] > _TOKENS - 64


def test_an_image_from_another_host_is_refused(reader: tuple[openai.OpenAI, str]) -> None:
    client, _ = reader
    with pytest.raises(openai.BadRequestError, match=r"allowed host: images\.example\.com"):
        ask(client, "https://elsewhere.example.org/a.png")


def test_the_table_of_parts_says_what_becomes_of_an_image(reader: tuple[openai.OpenAI, str]) -> None:
    _, words = reader
    assert "images are not fetched, each counts as 1024 words" in words


def test_a_model_that_reads_text_alone_refuses_images(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="accepts only text"):
        client.chat.completions.create(
            model="qwen3-8b",
            max_tokens=3,
            messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": _WITHIN}}]}],
        )
