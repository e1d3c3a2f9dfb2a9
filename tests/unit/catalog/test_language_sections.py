"""Models with images whose language model is of another class, and what is loaded of their encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from inference_catalog.configurations.config_fields import ModelConfigError, UncountedClassError
from inference_catalog.configurations.describe import describe
from tests.unit.catalog.recorded_layers import TEXT, configurations

VISION = {
    "hidden_size": 32,
    "intermediate_size": 128,
    "num_hidden_layers": 6,
    "image_size": 56,
    "patch_size": 14,
}
LLAVA = {
    "architectures": ["LlavaForConditionalGeneration"],
    "image_seq_length": 16,
    "text_config": TEXT | {"model_type": "llama"},
    "vision_config": VISION,
}
#: Parameters of one layer of the encoder.
ENCODER_LAYER = 4 * 32 * 32 + 2 * 32 * 128 + 9 * 32 + 128


def parameters_of_vision(configuration: Mapping[str, Any]) -> int:
    return int(describe(configuration)["vision"]["weight_bytes"] // 2)


def problems(configuration: Mapping[str, Any]) -> str:
    with pytest.raises(ModelConfigError) as raised:
        describe(configuration)
    return str(raised.value)


# A language model in a section of its own.


@pytest.mark.parametrize(
    "section",
    [
        {"model_type": "qwen2"},
        {"architectures": ["Qwen2ForCausalLM"]},
        {"architectures": ["Qwen2ForCausalLM"], "model_type": "llama"},
    ],
)
def test_the_section_says_which_language_model_it_is(section: dict[str, Any]) -> None:
    """Qwen2 has biases that Llama does not have. The class decides before the type."""
    found = describe(LLAVA | {"text_config": TEXT | section})
    biases = 4 * (8 + 2 * 2) * 8
    assert found["weight_bytes"] - describe(LLAVA)["weight_bytes"] == 2 * biases
    assert found["architecture"] == "LlavaForConditionalGeneration"


@pytest.mark.parametrize(
    ("section", "shown"),
    [({"model_type": "acme"}, "'acme'"), ({"architectures": ["AcmeForCausalLM"]}, "'AcmeForCausalLM'")],
)
def test_a_language_model_that_is_not_counted_is_named(section: dict[str, Any], shown: str) -> None:
    with pytest.raises(UncountedClassError) as raised:
        describe(LLAVA | {"text_config": TEXT | section})
    assert str(raised.value) == (
        f"text_config: got a language model of the class {shown}, which is not counted here"
    )


def test_a_section_of_another_name_is_named_as_it_stands_in_the_file() -> None:
    configuration = {"architectures": ["InternVLChatModel"], "llm_config": {"model_type": "acme"}}
    assert problems(configuration).startswith("llm_config: got a language model")


# The encoder of images.


@pytest.mark.parametrize(("layer", "used"), [(-1, 6), (-2, 5), (4, 4), ([-1, 3], 6), ([1, 3], 3)], ids=str)
def test_engines_load_the_encoder_up_to_the_layer_whose_result_is_read(layer: Any, used: int) -> None:
    whole = parameters_of_vision(LLAVA | {"vision_feature_layer": -1})
    found = parameters_of_vision(LLAVA | {"vision_feature_layer": layer})
    assert whole - found == (6 - used) * ENCODER_LAYER


@pytest.mark.parametrize("layer", [7, -7, "last", [1, None], True], ids=str)
def test_a_layer_that_the_encoder_does_not_have_is_refused(layer: Any) -> None:
    assert "vision_feature_layer: got" in problems(LLAVA | {"vision_feature_layer": layer})


def test_internvl_counts_layers_from_zero() -> None:
    configuration = configurations("classes")["InternVLChatModel"]["configuration"]
    last = parameters_of_vision(configuration)
    assert parameters_of_vision(configuration | {"select_layer": 23}) == last
    assert parameters_of_vision(configuration | {"select_layer": 0}) < last / 3


@pytest.mark.parametrize("ratio", [0, 2, "half", True])
def test_a_ratio_of_downsampling_is_checked(ratio: Any) -> None:
    configuration = configurations("classes")["InternVLChatModel"]["configuration"]
    assert "downsample_ratio: got" in problems(configuration | {"downsample_ratio": ratio})


def test_the_tokens_of_an_image_are_known_where_the_file_says_so() -> None:
    vision = describe(LLAVA)["vision"]
    assert (vision["tokens_per_image"], vision["patches_per_token"]) == (16, 1)
    glm = describe(configurations("classes")["GLM4VForCausalLM"]["configuration"])["vision"]
    assert (glm["tokens_per_image"], glm["patches_per_token"]) == (1602, 4)


def test_every_device_holds_the_positions_of_patches() -> None:
    """An image of twice the side has 48 more positions of 32 values."""
    larger = LLAVA | {"vision_config": VISION | {"image_size": 112}}
    [small], [large] = (describe(each)["less_divided"][:1] for each in (LLAVA, larger))
    assert large["other_bytes"] - small["other_bytes"] == 2 * 48 * 32


def test_the_projector_of_molmo_is_as_wide_as_its_networks() -> None:
    configuration = configurations("classes")["MolmoForCausalLM"]["configuration"]
    wider = configuration | {"intermediate_size": configuration["intermediate_size"] + 2}
    assert parameters_of_vision(wider) - parameters_of_vision(configuration) == 2 * 1024 + 4096
