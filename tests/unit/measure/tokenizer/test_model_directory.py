"""What a frontend and a simulated engine read of a model without weights."""

import json
from pathlib import Path

import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import one_token_words, write_model_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_model_directory(catalog.model("Qwen/Qwen3-8B"), tmp_path / "model")


def _vocabulary(directory: Path) -> dict[str, int]:
    vocabulary: dict[str, int] = json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"]
    return vocabulary


def test_the_configuration_has_the_shape_of_the_catalogue(directory: Path) -> None:
    model = catalog.model("Qwen/Qwen3-8B")
    configuration = json.loads((directory / "config.json").read_text())
    assert configuration["num_hidden_layers"] == model.layers
    assert configuration["num_key_value_heads"] == model.kv_heads
    assert configuration["max_position_embeddings"] == model.context_length


def test_every_word_is_a_token_with_and_without_a_space(directory: Path) -> None:
    vocabulary = _vocabulary(directory)
    assert all(word in vocabulary and f"Ġ{word}" in vocabulary for word in one_token_words())


def test_every_byte_is_a_token_so_that_any_text_can_be_written(directory: Path) -> None:
    merges = json.loads((directory / "tokenizer.json").read_text())["model"]["merges"]
    merged = {"".join(pair) for pair in merges}
    single = [token for token in _vocabulary(directory) if token not in merged and len(token) == 1]
    assert len(single) == 256


def test_ids_are_dense_and_the_ones_that_the_simulator_answers_with_are_words(directory: Path) -> None:
    vocabulary = _vocabulary(directory)
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    by_id = {index: token for token, index in vocabulary.items()}
    assert all(by_id[index].removeprefix("Ġ") in one_token_words() for index in range(1000, 2000))


def test_the_same_model_gives_the_same_files(directory: Path, tmp_path: Path) -> None:
    again = write_model_directory(catalog.model("Qwen/Qwen3-8B"), tmp_path / "again")
    for file in directory.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes()
