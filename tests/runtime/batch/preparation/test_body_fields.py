"""Every field of OpenAI's requests is either allowed or left out by name, so that a new one is noticed."""

from __future__ import annotations

import re

import pytest
from openai.types import completion_create_params, embedding_create_params, image_generate_params
from openai.types.chat import completion_create_params as chat_create_params

from inference_contracts import batch_body_fields
from inference_contracts.batch_body_fields import BODY_FIELDS, IMAGES_PATH

TYPES = {
    "/v1/chat/completions": chat_create_params.CompletionCreateParamsBase,
    "/v1/completions": completion_create_params.CompletionCreateParamsBase,
    "/v1/embeddings": embedding_create_params.EmbeddingCreateParams,
    IMAGES_PATH: image_generate_params.ImageGenerateParamsBase,
}


@pytest.mark.parametrize("path", BODY_FIELDS)
def test_no_field_of_openai_is_forgotten(path: str) -> None:
    left_out = set(re.findall(r"``(\w+)``", batch_body_fields.__doc__ or ""))
    assert "store" in left_out
    assert not left_out & BODY_FIELDS[path]
    assert set(TYPES[path].__annotations__) - left_out <= BODY_FIELDS[path]
