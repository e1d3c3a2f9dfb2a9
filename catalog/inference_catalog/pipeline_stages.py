"""The stages into which engines divide the layers of a model, each as a model of its own.

A stage holds consecutive layers. The first one also holds the embedding, and what reads images; the last one
the output layer, which is a second copy of the embedding where both are the same. With vLLM, each stage holds
what reads images, and the tables that its class says (``Architecture.in_each_stage``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from inference_catalog.cache_rules import CacheRule
from inference_catalog.catalogue import shipped
from inference_catalog.model import LAYER_LETTERS, LayerType, LessDivided, Model
from inference_catalog.weight_rules import whole_bytes
from inference_contracts.records import dataclass

_PLAIN_BYTES = 2


def stages_of(
    model: Model, count: int, rule: CacheRule, sizes: Sequence[int] | None = None
) -> tuple[Model, ...]:
    """Return the stages of a model, from the first to the last, as the engine holds them.

    One stage is the model itself, unless the engine holds more of it whole than vLLM.

    Layers that guess tokens belong to no stage here: speculation needs one stage.

    Parameters
    ----------
    model
        The model as devices hold it.
    count
        Number of stages.
    rule
        Engine whose rule divides the layers.
    sizes
        Layers of each stage, if the engine is told so.
    """
    more = whole_bytes(model, rule)
    if count == 1:
        return (_with_whole(model, more),)
    layers = _layers(model)
    found, start = [], 0
    for stage, size in enumerate(sizes or _SIZES[rule](len(layers), count)):
        place = _Place(stage == 0, stage == count - 1)
        found.append(_stage(model, place, layers[start : start + size], layers, rule))
        start += size
    return (_with_whole(found[0], more), *found[1:])


def _with_whole(model: Model, more: int) -> Model:
    """Return a model whose devices hold so many bytes more whole."""
    return replace(model, less_divided=(*model.less_divided, LessDivided(1, 0, more))) if more else model


@dataclass(frozen=True, slots=True)
class _Place:
    """Whether a stage is the first or the last one."""

    first: bool
    last: bool


#: vLLM's classes that are not counted may do so, as those of most mixtures of experts do.
_OF_OTHER_CLASSES = "embedding"


def _vllm_sizes(layers: int, count: int) -> list[int]:
    """Return the layers of each stage (``get_pp_indices`` in ``distributed/utils.py`` of vLLM 0.31.0).

    Remaining layers go to the stages before the last one, backwards.
    """
    sizes = [layers // count] * count
    for place in range(layers % count):
        sizes[-2 - place] += 1
    return sizes


def _sglang_sizes(layers: int, count: int) -> list[int]:
    """Return the layers of each stage (``get_pp_indices`` in ``distributed/utils.py`` of SGLang 0.5.21)."""
    least, more = divmod(layers, count)
    return [least + (stage >= count - more) for stage in range(count)]


def _even_sizes(layers: int, count: int) -> list[int]:
    """Return the layers of each stage, of which the first have one more.

    ``Mapping.pp_layers`` in ``tensorrt_llm/mapping.py`` of TensorRT-LLM, read at commit 05ebebb2 because the
    wheel of the pinned release is not published. Other engines with this rule have no stages.
    """
    least, more = divmod(layers, count)
    return [least + (stage < more) for stage in range(count)]


_SIZES: Mapping[CacheRule, Callable[[int, int], list[int]]] = MappingProxyType(
    {"vllm": _vllm_sizes, "sglang": _sglang_sizes, "every token": _even_sizes}
)


def _layers(model: Model) -> list[LayerType]:
    """Return the layers in their order.

    Where a model's order is not known, each kind of layers is spread evenly, and all weigh the same.
    """
    if model.layer_order:
        return [model.layer_types[LAYER_LETTERS.index(letter)] for letter in model.layer_order]
    count = model.layers
    weights = _each(model, count)
    return [
        replace(
            weights,
            cached=tuple(
                place
                for place, group in enumerate(model.cached_layers)
                for _ in range((index + 1) * group.count // count - index * group.count // count)
            ),
        )
        for index in range(count)
    ]


def _each(model: Model, count: int) -> LayerType:
    """Return the mean weights of a layer."""
    vision = model.vision.weight_bytes if model.vision else 0
    inside = model.weight_bytes - vision - _embedding_bytes(model) - model.output_bytes
    return LayerType(
        weight_bytes=max(0, inside) // count,
        expert_weight_bytes=model.expert_weight_bytes // count,
        shared_expert_bytes=model.shared_expert_bytes // count,
        matrix_parameters=model.matrix_parameters // count,
        less_divided=tuple(
            LessDivided(each.parts, each.matrix_bytes // count, each.other_bytes // count)
            for each in model.less_divided
        ),
    )


def _embedding_bytes(model: Model) -> int:
    return _PLAIN_BYTES * model.vocabulary_size * model.hidden_size


def _stage(
    model: Model, place: _Place, own: Sequence[LayerType], layers: Sequence[LayerType], rule: CacheRule
) -> Model:
    """Return the stage with some of all layers."""
    cached = Counter(number for each in own for number in each.cached)
    groups = list(enumerate(model.cached_layers))
    weights, limited = sum(each.weight_bytes for each in own), _added(own)
    known = shipped().architectures.get(model.architecture)
    tables = (known.in_each_stage if known else _OF_OTHER_CLASSES) if rule == "vllm" else "ends"
    embedding, vision = _embedding_bytes(model), model.vision if place.first or rule == "vllm" else None
    if place.first:
        weights += model.weight_bytes - sum(each.weight_bytes for each in layers) - model.output_bytes
        limited = _with_rest(model, limited, _added(layers))
    else:
        weights += embedding if tables != "ends" else 0
        if vision:
            weights += vision.weight_bytes
            matrices, others = limited.get(1, (0, 0))
            whole = vision.weight_bytes if known and known.whole_vision else 0
            limited[1] = (matrices, others + whole)
    if place.last or tables == "tables":
        weights += model.output_bytes
    if place.last and not model.output_bytes and tables == "ends":
        weights += embedding
    return replace(
        model,
        layers=len(own),
        layer_types=(),
        layer_order="",
        cached_layers=tuple(replace(each, count=cached[number]) for number, each in groups if cached[number]),
        cached_elsewhere=tuple(
            replace(each, count=each.count - cached[number])
            for number, each in groups
            if each.count > cached[number]
        ),
        weight_bytes=weights,
        expert_weight_bytes=sum(each.expert_weight_bytes for each in own),
        shared_expert_bytes=sum(each.shared_expert_bytes for each in own),
        matrix_parameters=sum(each.matrix_parameters for each in own),
        less_divided=tuple(LessDivided(parts, *sizes) for parts, sizes in sorted(limited.items())),
        vision=vision,
    )


_Limited = dict[int, tuple[int, int]]


def _with_rest(model: Model, own: _Limited, inside: _Limited) -> _Limited:
    """Return what a stage's layers divide less, with what stands outside of all layers."""
    found = dict(own)
    for each in model.less_divided:
        matrices, others = found.get(each.parts, (0, 0))
        known_matrices, known_others = inside.get(each.parts, (0, 0))
        found[each.parts] = (
            matrices + max(0, each.matrix_bytes - known_matrices),
            others + max(0, each.other_bytes - known_others),
        )
    return found


def _added(layers: Sequence[LayerType]) -> _Limited:
    """Return the bytes of projections and of others that tensor parallelism divides less, by their parts."""
    found: _Limited = {}
    for layer in layers:
        for each in layer.less_divided:
            matrices, others = found.get(each.parts, (0, 0))
            found[each.parts] = (matrices + each.matrix_bytes, others + each.other_bytes)
    return found
