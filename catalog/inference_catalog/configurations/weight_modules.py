"""Lists the weights of a model, with the names that quantisation settings use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inference_catalog.configurations.config_fields import Architecture
from inference_catalog.configurations.layer_parts import LayerPart, WeightModule
from inference_catalog.configurations.text_shape import TextShape
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class WeightModules:
    """The parameters of a language model."""

    matrices: tuple[WeightModule, ...]
    """The projections of attention and feed-forward layers. Checkpoints may quantise them."""
    other_parameters: int
    """Embeddings, norms, routers and biases, which stay in 16 bits."""
    whole_parameters: int
    """Those of them that every device holds whole: norms and routers."""
    output: WeightModule
    """The output layer; without parameters if it is the embedding."""

    @property
    def total(self) -> int:
        """All parameters."""
        matrices = sum(each.parameters for each in self.matrices)
        return self.other_parameters + matrices + self.output.parameters

    @property
    def expert_parameters(self) -> int:
        """Parameters of routed experts."""
        return sum(each.parameters for each in self.matrices if each.is_expert)


_NO_OUTPUT = WeightModule("lm_head", 0, is_output=True)


def language_modules(shape: TextShape, architecture: Architecture) -> WeightModules:
    """List the parameters that an engine loads, without layers for multi-token prediction."""
    layers = layer_modules(shape, architecture)
    return WeightModules(
        tuple(matrix for layer in layers for matrix in layer.matrices),
        shape.tables + sum(layer.other_parameters for layer in layers),
        sum(layer.whole_parameters for layer in layers)
        + (shape.vocabulary_size * shape.hidden_size if architecture.whole_embedding else 0),
        WeightModule("lm_head", shape.output, is_output=True),
    )


def layer_modules(shape: TextShape, architecture: Architecture) -> tuple[WeightModules, ...]:
    """List the parameters of each layer, without layers for multi-token prediction."""
    path, whole = f"{architecture.prefix}.layers".removeprefix("."), architecture.whole_layers
    return tuple(
        WeightModules(
            tuple(replace(each, parts=1) if whole else each for each in _named([part], path, index)),
            part.plain,
            part.plain if whole else part.whole,
            _NO_OUTPUT,
        )
        for index, part in enumerate(shape.parts)
    )


def prediction_modules(shape: TextShape, architecture: Architecture) -> WeightModules:
    """List the parameters of the layers for multi-token prediction, which share both embeddings."""
    own = architecture.prediction_path
    path = own or f"{architecture.prefix}.layers".removeprefix(".")
    return WeightModules(
        tuple(_named(shape.predicted, path, 0 if own else shape.layers)),
        sum(part.plain for part in shape.predicted),
        sum(part.whole for part in shape.predicted),
        _NO_OUTPUT,
    )


def _named(parts: Iterable[LayerPart], path: str, first: int) -> Iterable[WeightModule]:
    for index, part in enumerate(parts, first):
        for each in part.matrices:
            yield replace(each, name=f"{path}.{index}.{each.name}")
