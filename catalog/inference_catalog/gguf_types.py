"""Models as files of GGUF, the format of llama.cpp: sizes of the types, and the classes that it converts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from inference_catalog.model import Model

_FILE = Path(__file__).resolve().parent / "data" / "gguf.json"
_BITS_PER_BYTE = 8
#: The output layer is Q6_K or larger (``llama_tensor_get_type`` in ``src/llama-quant.cpp``).
_MIN_OUTPUT_BITS = 6.5625


def bits_per_weight() -> Mapping[str, float]:
    """Return the mean bits per weight of each type of GGUF that the catalogue knows."""
    return MappingProxyType(dict[str, float](_document()["bits_per_weight"]))


def as_published() -> Mapping[str, str]:
    """Return the types of files that keep a model's weights as they are published, with their type there."""
    return MappingProxyType(dict[str, str](_document()["as_published"]))


def gguf_types() -> tuple[str, ...]:
    """Return every type of GGUF whose size the catalogue knows, those with a fixed size from the smallest."""
    return (*sorted(bits_per_weight(), key=lambda kind: (bits_per_weight()[kind], kind)), *as_published())


def sized_for(model: Model, kind: str) -> bool:
    """Return whether the size of a model as a file of this type is known.

    Parameters
    ----------
    model
        The model with its published weights.
    kind
        One of `gguf_types`.
    """
    return model.weight_type == as_published().get(kind, "bf16")


def converted_classes() -> frozenset[str]:
    """Return the model classes that llama.cpp converts to GGUF, as ``config.json`` names them."""
    return frozenset(_document()["classes"])


def in_gguf(model: Model, kind: str) -> Model:
    """Return a model as a file of GGUF holds it; itself if the size of this file is not known.

    A type that keeps the published weights has at most their size: llama.cpp stores what is not in this type
    in 16 bits or fewer. Otherwise, the projections take the type's mean bits. All other weights count with
    the 6.6 bits of the output layer or more, which is at most a few percent too much.

    Parameters
    ----------
    model
        The model with its published weights.
    kind
        One of `gguf_types`.
    """
    if not sized_for(model, kind):
        return model
    if kind in as_published():
        return replace(model, name=f"{model.name} in {kind}", weight_type="gguf", weight_block=0)
    bits = bits_per_weight()[kind]
    parameters = model.weight_bytes / 2
    others = parameters - model.matrix_parameters
    size = model.matrix_parameters * bits + others * max(bits, _MIN_OUTPUT_BITS)
    return replace(
        model,
        name=f"{model.name} in {kind}",
        weight_type="gguf",
        weight_block=0,
        weight_bytes=math.ceil(size / _BITS_PER_BYTE),
        expert_weight_bytes=math.ceil(model.expert_weight_bytes / 2 * bits / _BITS_PER_BYTE),
    )


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return document
