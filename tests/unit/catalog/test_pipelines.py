"""Sizes of models that make images agree with their configurations; speeds name what the catalogue has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import inference_catalog as catalog
from inference_blueprints.spec import formats
from inference_catalog.catalogue import model_entry
from inference_catalog.entry_builder import CatalogueError

MODELS = tuple(catalog.pipelines().values())


def parts(model: catalog.Model) -> tuple[catalog.PipelinePart, ...]:
    assert model.pipeline is not None
    return model.pipeline.text_encoder, model.pipeline.transformer, model.pipeline.vae


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_download_is_the_sum_of_the_parts(model: catalog.Model) -> None:
    assert sum(part.file_bytes for part in parts(model)) == model.weight_bytes
    parameters = sum(part.file_bytes / part.stored_bytes for part in parts(model)) / 1e9
    assert model.parameters_billion == pytest.approx(parameters, abs=0.005)


def test_the_transformer_of_z_image_turbo_is_stored_in_32_bits() -> None:
    """Counted from the layers of ``ZImageTransformer2DModel``; the files also have headers."""
    model = catalog.pipelines()["Tongyi-MAI/Z-Image-Turbo"]
    _, transformer, _ = parts(model)
    size, wide, text, timesteps = model.hidden_size, model.feed_forward_size, 2560, 256
    block = 4 * size**2 + 3 * size * wide + 4 * size + 2 * model.head_size
    modulation = (timesteps + 1) * 4 * size
    refiners, latent = 2, 64
    count = (model.layers + refiners) * (block + modulation) + refiners * block
    count += latent * size + size + text + text * size + size + 2 * size
    count += timesteps * 1024 + 1024 + 1024 * timesteps + timesteps
    count += size * latent + latent + timesteps * size + size
    assert transformer.stored_bytes == 4
    assert transformer.file_bytes == pytest.approx(4 * count, rel=1e-5)
    assert transformer.loaded_bytes == transformer.file_bytes // 2


def test_its_text_encoder_has_the_size_of_qwen3_4b() -> None:
    encoder, _, _ = parts(catalog.pipelines()["Tongyi-MAI/Z-Image-Turbo"])
    assert encoder.file_bytes == pytest.approx(catalog.model("Qwen/Qwen3-4B").weight_bytes, rel=1e-4)


@pytest.mark.parametrize(
    "speed", catalog.image_speeds(), ids=lambda speed: f"{speed.model}-{speed.accelerator}"
)
def test_a_published_speed_is_of_known_parts_and_names_its_page(speed: catalog.ImageSpeed) -> None:
    assert speed.model in catalog.pipelines()
    assert speed.accelerator in catalog.accelerators()
    assert speed.engine in catalog.engines()
    assert re.fullmatch(formats.IMAGE_SIZE, speed.size)
    assert speed.source.startswith("https://")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", speed.date)


def test_a_part_without_a_size_is_named() -> None:
    [model] = MODELS
    values = {name: getattr(model, name) for name in model.__dataclass_fields__ if name != "name"}
    with pytest.raises(CatalogueError, match="missing fields: file_bytes"):
        model_entry(
            model.name, values | {"pipeline": {"vae": {"architecture": "A", "stored_bytes": 2}}}, Path("a")
        )
