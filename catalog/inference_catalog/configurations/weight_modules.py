"""Lists the weight matrices of a model, with the names that quantisation settings use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inference_catalog.configurations.config_fields import Architecture
from inference_catalog.configurations.text_shape import TextShape


@dataclass(frozen=True, slots=True)
class WeightModule:
    """A weight matrix of a layer."""

    name: str
    """Name in the checkpoint, such as ``model.layers.0.self_attn.q_proj``."""
    parameters: int
    """Its parameters, of all experts together for the matrix of experts."""
    is_expert: bool = False
    """Whether it belongs to routed experts."""


@dataclass(frozen=True, slots=True)
class WeightModules:
    """The parameters of a language model."""

    matrices: tuple[WeightModule, ...]
    """The projections of attention and feed-forward layers. Checkpoints may quantise them."""
    other_parameters: int
    """Embeddings, norms, routers and biases, which stay in 16 bits."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.other_parameters + sum(each.parameters for each in self.matrices)

    @property
    def expert_parameters(self) -> int:
        """Parameters of routed experts."""
        return sum(each.parameters for each in self.matrices if each.is_expert)


def language_modules(shape: TextShape, architecture: Architecture) -> WeightModules:
    """List the parameters that an engine loads, without layers for multi-token prediction."""
    embeddings = shape.vocabulary_size * shape.hidden_size * (1 if shape.tied else 2)
    others = embeddings + (2 * shape.layers + 1) * shape.hidden_size
    matrices: list[WeightModule] = []
    for index in range(shape.layers):
        matrices += _layer(shape, architecture, index, index)
        others += _plain(shape, architecture, index)
    return WeightModules(tuple(matrices), others)


def prediction_modules(shape: TextShape, architecture: Architecture) -> WeightModules:
    """List the parameters of the layers for multi-token prediction, which share both embeddings.

    Each is a layer like the last one, behind a projection of two hidden vectors to one (DeepSeek-V3,
    arXiv:2412.19437, section 2.2).
    """
    matrices: list[WeightModule] = []
    others = 0
    for added in range(shape.predicted_layers):
        matrices += _layer(shape, architecture, shape.layers - 1, shape.layers + added)
        others += _plain(shape, architecture, shape.layers - 1)
        others += 2 * shape.hidden_size * shape.hidden_size + 5 * shape.hidden_size
    return WeightModules(tuple(matrices), others)


def _layer(shape: TextShape, architecture: Architecture, like: int, index: int) -> Iterator[WeightModule]:
    """Yield the matrices of layer `index`, which is built like layer `like`."""
    prefix = f"model.layers.{index}"
    attention = _latent_attention(shape) if shape.latent else _grouped_attention(shape)
    for name, parameters in attention:
        yield WeightModule(f"{prefix}.self_attn.{name}", parameters)
    if shape.indexer and shape.latent and shape.indexer.layers[like]:
        size = shape.indexer.heads * shape.indexer.head_size
        query = (shape.latent.query_rank or shape.hidden_size) * size
        yield WeightModule(f"{prefix}.self_attn.indexer.wq_b", query)
        yield WeightModule(f"{prefix}.self_attn.indexer.wk", shape.hidden_size * shape.indexer.head_size)
    experts, width = shape.experts, shape.hidden_size
    if experts is None or not experts.layers[like]:
        yield from _feed_forward(f"{prefix}.mlp", width * shape.dense_width)
        return
    path = f"{prefix}.{architecture.feed_forward}"
    names = ("w1", "w3", "w2") if architecture.feed_forward == "block_sparse_moe" else None
    yield from _feed_forward(
        f"{path}.experts.0", experts.count * width * experts.width, names=names, is_expert=True
    )
    if experts.shared_width:
        yield from _feed_forward(f"{path}.shared_experts", width * experts.shared_width)


def _feed_forward(
    path: str, parameters: int, *, names: tuple[str, ...] | None = None, is_expert: bool = False
) -> Iterator[WeightModule]:
    for name in names or ("gate_proj", "up_proj", "down_proj"):
        yield WeightModule(f"{path}.{name}", parameters, is_expert)


def _grouped_attention(shape: TextShape) -> Iterator[tuple[str, int]]:
    query = shape.hidden_size * shape.attention_heads * shape.head_size
    key = shape.hidden_size * shape.kv_heads * shape.head_size
    yield from (("q_proj", query), ("k_proj", key), ("v_proj", key), ("o_proj", query))


def _latent_attention(shape: TextShape) -> Iterator[tuple[str, int]]:
    """Yield the projections of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434)."""
    latent, heads, hidden = shape.latent, shape.attention_heads, shape.hidden_size
    if latent is None:
        return
    query_size = heads * (latent.plain_size + latent.rope_size)
    if latent.query_rank:
        yield "q_a_proj", hidden * latent.query_rank
        yield "q_b_proj", latent.query_rank * query_size
    else:
        yield "q_proj", hidden * query_size
    yield "kv_a_proj_with_mqa", hidden * (latent.latent_rank + latent.rope_size)
    yield "kv_b_proj", latent.latent_rank * heads * (latent.plain_size + latent.value_size)
    yield "o_proj", heads * latent.value_size * hidden


def _plain(shape: TextShape, architecture: Architecture, like: int) -> int:
    """Return the biases and the router of a layer."""
    count = 0
    if shape.has_bias and shape.latent is None:
        count += (shape.attention_heads + 2 * shape.kv_heads) * shape.head_size
        count += shape.hidden_size if architecture.bias == "qkvo" else 0
    if shape.indexer and shape.indexer.layers[like]:
        count += shape.hidden_size * shape.indexer.heads
    if shape.experts and shape.experts.layers[like]:
        count += shape.experts.count * shape.hidden_size
        if architecture.expert_bias:
            count += shape.experts.count * (2 * shape.experts.width + shape.hidden_size)
    return count
