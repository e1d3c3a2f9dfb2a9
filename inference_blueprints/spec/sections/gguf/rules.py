"""Rules on weights in GGUF, which llama.cpp reads and other engines here do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import listing, quote
from inference_catalog import Model
from inference_catalog.gguf_types import as_published, converted_classes, gguf_types, sized_for
from inference_contracts.errors import Finding

_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_DYNAMIC = re.compile(r"(?<![A-Za-z0-9])UD-[^/]*$")
_TYPE = re.compile(
    r"(?<![A-Za-z0-9])((?:I?Q|TQ)\d_\w+|MXFP4\w*|BF16|F16|F32)(?=[.-])",
    re.IGNORECASE,
)
#: Other names of the types with ``_M`` (``QUANT_OPTIONS`` in ``tools/quantize/quantize.cpp``).
_SHORT_FORMS = ("Q3_K", "Q4_K", "Q5_K")


@rule
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


@rule
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


@rule
def gguf_file_is_of_its_type(spec: Spec) -> Iterator[Finding]:
    """Check that the name of the file does not contradict the type, which gives the size of the weights."""
    for index, model in usable(spec.models):
        gguf = model.weights.gguf
        if gguf is None:
            continue
        file = str(gguf.file)
        path = ("spec", "models", index, "weights", "gguf")
        named = _type_in(file)
        if _DYNAMIC.search(file):
            message = (
                f"got {quote(file)}, a dynamic file of Unsloth: its layers have different types, so that no "
                "type gives its size; name a file of one type, without 'UD' in its name"
            )
            yield Finding((*path, "file"), message)
        elif named and named != gguf.type:
            known = named in gguf_types()
            remedy = (
                f"set 'type: {named}', or name the file with {gguf.type}"
                if known
                else f"the size of {named} is not known here; name a file with one of {listing(gguf_types())}"
            )
            yield Finding((*path, "type"), f"got {quote(gguf.type)}, but the file is {quote(file)}; {remedy}")


def _type_in(file: str) -> str | None:
    """Return the type in the name of a file, in llama.cpp's spelling; None if it names none."""
    found = _TYPE.findall(file.rpartition("/")[2])
    if not found:
        return None
    name = str(found[-1]).upper()
    return f"{name}_M" if name in _SHORT_FORMS else name


def _of_other_weights(known: Model, kind: str) -> str:
    """Report an entry whose published weights are not those from which the file's size follows."""
    wanted = as_published().get(kind)
    got = f"got {quote(known.name)}, whose weights are {known.weight_type}"
    if wanted:
        return f"{got}; the type {kind} keeps weights that are published in {wanted}; set another type"
    kept = [each for each, published in as_published().items() if published == known.weight_type]
    remedy = f"set 'type: {kept[0]}', or name" if kept else "name"
    return f"{got}; with 'gguf', {remedy} the entry of the model with 16 bits"


@rule
def gguf_is_of_a_converted_class(spec: Spec) -> Iterator[Finding]:
    """Check that llama.cpp converts the class of the model, and that the size of its weights is known."""
    for index, model in usable(spec.models):
        weights = model.weights
        known = weights.entries.get(weights.catalog or "")
        path = ("spec", "models", index, "weights", "catalog")
        if weights.gguf is None or known is None:
            continue
        if not sized_for(known, weights.gguf.type):
            yield Finding(path, _of_other_weights(known, weights.gguf.type))
        elif known.architecture not in converted_classes():
            message = (
                f"got {quote(known.name)} of the class {known.architecture}, which llama.cpp does not "
                "convert to GGUF; use another model or engine"
            )
            yield Finding(path, message)
