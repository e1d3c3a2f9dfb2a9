"""What is known of the part of a model that reads images."""

from __future__ import annotations

import pytest

import inference_catalog as catalog
from inference_catalog.configurations.describe import describe

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


QWEN2 = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "num_hidden_layers": 28,
    "vocab_size": 152064,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": False,
}
TOWER = {"depth": 32, "in_chans": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
PUBLISHED = {
    "Qwen2_5_VLForConditionalGeneration": (
        {"hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584},
        16_584_333_312,
    ),
    "Qwen2VLForConditionalGeneration": (
        {"embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584},
        16_582_751_232,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_whole_model_with_its_tower_has_the_published_size(name: str) -> None:
    """``total_size`` in ``model.safetensors.index.json`` of Qwen2.5-VL-7B-Instruct, Qwen2-VL-7B-Instruct."""
    tower, size = PUBLISHED[name]
    counted = describe(QWEN2 | {"architectures": [name], "vision_config": TOWER | tower})
    assert counted["weight_bytes"] == pytest.approx(size, rel=0.0001)
