"""Rules on weights in GGUF, which llama.cpp reads and other engines here do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.catalog.gguf_types import converted_classes
from inference_blueprints.errors import Finding
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import quote

_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


def gguf_goes_with_llama_cpp(spec: Spec) -> Iterator[Finding]:
    """Check that a model has a file of GGUF exactly if its engine is llama.cpp."""
    for index, model in usable(spec.models):
        path, gguf = ("spec", "models", index, "weights"), model.weights.gguf
        chosen = model.engine.chosen
        if chosen == "llamaCpp" and gguf is None:
            message = (
                "'gguf' is missing, and the engine 'llamaCpp' reads only files of GGUF; set 'gguf: {file: …, "
                "type: …}', or another engine"
            )
            yield Finding(path, message)
        elif chosen != "llamaCpp" and gguf is not None:
            message = f"the engine {quote(chosen)} reads no GGUF here; remove it, or set the engine llamaCpp"
            yield Finding((*path, "gguf"), message)


def gguf_file_is_whole(spec: Spec) -> Iterator[Finding]:
    """Check that the file comes from the Hub and is the whole model."""
    for index, model in usable(spec.models):
        path, weights = ("spec", "models", index, "weights"), model.weights
        if weights.gguf is None:
            continue
        for key, value in (("s3", weights.s3), ("mirror", weights.mirror), ("type", weights.type)):
            if value is not None:
                yield Finding((*path, key), "is not supported with 'gguf'; remove it")
        if _PART.search(str(weights.gguf.file)):
            message = (
                f"got {quote(weights.gguf.file)}, a part of a model; name a file that holds the whole model"
            )
            yield Finding((*path, "gguf", "file"), message)


def gguf_is_of_a_converted_class(spec: Spec) -> Iterator[Finding]:
    """Check that llama.cpp converts the class of the model, and that its 16-bit entry is known."""
    for index, model in usable(spec.models):
        weights = model.weights
        known = weights.entries.get(weights.catalog or "")
        path = ("spec", "models", index, "weights", "catalog")
        if weights.gguf is None or known is None:
            continue
        if known.weight_type != "bf16":
            message = (
                f"got {quote(known.name)}, whose weights are {known.weight_type}; with 'gguf', name the "
                "entry of the model with 16 bits"
            )
            yield Finding(path, message)
        elif known.architecture not in converted_classes():
            message = (
                f"got {quote(known.name)} of the class {known.architecture}, which llama.cpp does not "
                "convert to GGUF; use another model or engine"
            )
            yield Finding(path, message)
