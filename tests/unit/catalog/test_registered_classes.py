"""Model classes that the pinned engines register: none that writes text is refused for want of counting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.spec.model_files import entry_of
from inference_catalog.catalogue import shipped
from inference_catalog.configurations.config_fields import UncountedClassError
from inference_catalog.configurations.describe import describe
from inference_catalog.configurations.given_model import example_layers

REGISTERED = shipped().registered_classes
TEXT = sorted(name for name, each in REGISTERED.classes.items() if each.task == "text")
UNCOUNTED = [name for name in TEXT if name not in shipped().architectures]
CONFIGURATION = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "vocab_size": 1000,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "max_position_embeddings": 4096,
}


def document_of(name: str, **given: Any) -> dict[str, Any]:
    return {
        "name": "acme/tiny",
        "configuration": {"architectures": [name], **CONFIGURATION},
        "exportedQuantization": None,
        "answerFormat": None,
        "gated": False,
        "licence": "MIT",
        "source": "a test: none",
        **given,
    }


def test_the_registry_is_that_of_the_pinned_engines() -> None:
    assert REGISTERED.releases == {name: catalog.engine(name).engine_version for name in ("vllm", "sglang")}
    assert {"LlamaForCausalLM", "MixtralForCausalLM", "BaichuanForCausalLM"} <= set(TEXT)
    assert len(TEXT) > 150


@pytest.mark.parametrize("name", UNCOUNTED)
def test_a_text_class_that_is_not_counted_is_taken_with_its_layers(name: str) -> None:
    layers = example_layers(document_of(name)["configuration"])
    entry = entry_of(document_of(name, layers=layers, weightsGib=1.5), Path("tiny.json"))
    assert entry.architecture == name
    assert entry.weight_bytes == 1.5 * 1024**3
    assert entry.kv_bytes_per_token() == 4 * 2 * 2 * 8 * 2


@pytest.mark.parametrize("name", UNCOUNTED)
def test_the_refusal_names_the_engines_that_run_the_class(name: str) -> None:
    with pytest.raises(UncountedClassError) as raised:
        describe(document_of(name)["configuration"])
    for engine in REGISTERED.classes[name].engines:
        assert f"{engine} {REGISTERED.releases[engine]}" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ArcticForCausalLM", "the last release of vLLM with it is 0.28.0"),
        ("BartForConditionalGeneration", "a plugin adds it to vLLM: https://"),
        ("AcmeForCausalLM", "no release with it is known here"),
        ("DomynEdgeForCausalLM", "without Dynamo, it is in vllm 0.33.0 (`blueprints engines`)"),
    ],
)
def test_a_class_that_no_pinned_engine_registers_says_so(name: str, said: str) -> None:
    with pytest.raises(UncountedClassError, match=r"neither vllm .* nor sglang .* registers it") as raised:
        describe({"architectures": [name]})
    assert said in str(raised.value)


def test_layers_by_another_family_s_names() -> None:
    """Fields of GPT-2, of ChatGLM, and of a model with latent attention."""
    gpt = {"n_layer": 12, "n_head": 12, "n_embd": 768}
    assert example_layers(gpt) == [{"count": 12, "kind": "full", "kvHeads": 12, "headSize": 64}]
    glm = {"num_layers": 40, "num_attention_heads": 32, "multi_query_group_num": 2, "hidden_size": 4096}
    assert example_layers(glm) == [{"count": 40, "kind": "full", "kvHeads": 2, "headSize": 128}]
    latent = {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert example_layers(latent) == [{"count": 61, "kind": "latent", "headSize": 576}]
