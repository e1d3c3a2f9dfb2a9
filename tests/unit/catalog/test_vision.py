"""What is known of the part of a model that reads images."""

from __future__ import annotations

import pytest

import inference_catalog as catalog

QWEN, GEMMA = "Qwen/Qwen3-VL-8B-Instruct", "google/gemma-3-12b-it"


def vision(name: str) -> catalog.Vision:
    entry = catalog.model(name).vision
    assert entry is not None
    return entry


def test_a_model_that_reads_images_says_how_and_others_have_nothing_of_it() -> None:
    readers = {name for name, model in catalog.models().items() if model.vision}
    assert {QWEN, GEMMA, "Qwen/Qwen3-VL-30B-A3B-Instruct-FP8"} <= readers
    assert "Qwen/Qwen3-8B" not in readers


def test_tokens_follow_from_the_size_of_an_image() -> None:
    """Qwen3-VL merges four patches of 16 by 16 pixels (its ``preprocessor_config.json``)."""
    assert (vision(QWEN).pixels_per_token, vision(QWEN).tokens_per_image) == (32 * 32, 0)


def test_some_models_scale_every_image_to_the_same_tokens() -> None:
    """Gemma 3 scales to 896 by 896 pixels and 256 tokens (``mm_tokens_per_image``)."""
    assert vision(GEMMA).tokens_per_image == 256
    assert vision(GEMMA).pixels_per_token * 256 == 896**2


def test_tower_and_projections_have_the_published_size() -> None:
    """The tower of Qwen3-VL-8B counts 0.58 billion parameters, SigLIP So400m 0.4 (arXiv:2303.15343)."""
    assert vision(QWEN).weight_bytes == pytest.approx(2 * 0.576e9, rel=0.01)
    assert vision(GEMMA).weight_bytes == pytest.approx(2 * 0.42e9, rel=0.02)
