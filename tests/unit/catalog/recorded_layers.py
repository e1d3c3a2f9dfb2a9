"""vLLM's recorded answers about models, and the models as the catalogue counts them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.describe import describe

_HERE = Path(__file__).parent
FACTS = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}
#: Fields of a small model that writes text.
TEXT = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "vocab_size": 1000,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "max_position_embeddings": 4096,
}
GROUPS = ("catalogue", "classes", "heldOut")
#: Models of the catalogue, with further arguments of the engine.
WITH_ARGUMENTS = ("blocks", "experts", "states")
#: Its ``modules_to_not_convert`` names no module that holds weights, but ``model.vision_tower``.
NAMES_A_WHOLE_PART = "mistralai/Devstral-Small-2-24B-Instruct-2512"


@cache
def configurations(group: str) -> dict[str, Any]:
    """Return the configurations of a group that has a file of its own."""
    document = json.loads((_HERE / "configurations" / f"{group}.json").read_text(encoding="utf-8"))
    return dict(document["configurations"])


def cases(groups: tuple[str, ...] = GROUPS) -> list[tuple[str, dict[str, Any]]]:
    """Return every case that vLLM did not refuse, with its group."""
    return [(group, case) for group in groups for case in recorded(group) if "error" not in case]


def recorded(group: str) -> list[dict[str, Any]]:
    """Return the cases of a group, also those that vLLM refused."""
    document = json.loads((_HERE / "recorded_layers" / f"{group}.json").read_text(encoding="utf-8"))
    return list(document["cases"])


@cache
def counted(group: str, name: str) -> catalog.Model:
    """Return a model as the catalogue counts it."""
    if group in ("catalogue", *WITH_ARGUMENTS) or (group == "ranks" and name in catalog.models()):
        return catalog.model(name)
    described = describe(configurations("classes" if group == "ranks" else group)[name]["configuration"])
    return model_entry(name, described | FACTS, Path("model.json"))


def published_weights(case: dict[str, Any]) -> int:
    """Return the bytes that vLLM allocates, with a vision part that is published in 16 bits in 16 bits.

    vLLM compares the list of a file in FP8 with whole names of modules (``is_layer_skipped`` in
    ``layers/quantization/utils/quant_utils.py`` of 0.31.0), so the name of a part keeps nothing in 16 bits.
    In the format of ``params.json``, which vLLM prefers where both files are, the same part is in 16 bits
    (``get_config`` in ``transformers_utils/config.py``, ``VisionTransformer`` in ``models/pixtral.py``).
    """
    if case["name"] != NAMES_A_WHOLE_PART:
        return int(case["weights"])
    language = catalog.model(case["name"]).matrix_parameters // int(case["tp"])
    return int(case["weights"]) + int(case["weight_types"]["float8_e4m3fn"]) - language


def case_name(value: object) -> str:
    """Return the name of a parameter in the name of a test."""
    match value:
        case {"name": name, "tp": size, "given_kv": kv_type, "sm": [capability, *_]}:
            arguments = value.get("arguments", {}) if isinstance(value, dict) else {}
            given = "".join(f", {key} {each}" for key, each in arguments.items())
            return f"{name}, TP {size}, {kv_type}, {capability}{given}"
        case _:
            return str(value)
