"""What one layer of a model holds: weight matrices, other parameters, and what it caches for a request."""

from __future__ import annotations

from collections.abc import Iterable

from inference_catalog.cached_layers import CachedLayers
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class WeightModule:
    """A weight matrix of a layer."""

    name: str
    """Name in the checkpoint, such as ``model.layers.0.self_attn.q_proj``; in a part, the end of it."""
    parameters: int
    """Its parameters, of all experts together for the matrix of experts."""
    is_expert: bool = False
    """Whether it belongs to routed experts."""
    parts: int = 0
    """Most parts into which tensor parallelism divides it, such as KV heads; 0 if as many as devices."""
    is_shared: bool = False
    """Whether it belongs to what ``Model.shared_expert_bytes`` counts."""
    is_output: bool = False
    """Whether it is the output layer, which stays in 16 bits unless a list of layers names it."""


@dataclass(frozen=True, slots=True)
class LayerPart:
    """A part of a layer, or a whole layer."""

    matrices: tuple[WeightModule, ...] = ()
    """Projections, which checkpoints may quantise. Their names start behind ``model.layers.0.``."""
    plain: int = 0
    """Norms, routers, biases and other parameters, which stay in 16 bits."""
    whole: int = 0
    """Those of `plain` that every device holds whole: norms, routers and gates."""
    cached: tuple[CachedLayers, ...] = ()
    """What one layer caches; empty for a part without attention."""


def matrices(path: str, *, kv_heads: int = 0, **sizes: int) -> tuple[WeightModule, ...]:
    """Return the matrices of a module.

    Parameters
    ----------
    path
        Name of the module in its layer, such as ``self_attn``; empty if the matrices stand in the layer.
    kv_heads
        Heads of its keys and values, of which a device has at least one; 0 if it has no such projections.
    sizes
        Parameters by the matrix's name. Those without parameters are left out.
    """
    start = f"{path}." if path else ""
    return tuple(
        WeightModule(f"{start}{name}", size, parts=_parts(path, name, kv_heads))
        for name, size in sizes.items()
        if size
    )


#: Matrices that engines do not divide into as many parts as devices (``QKVParallelLinear`` and
#: ``ReplicatedLinear`` in ``model_executor/layers/linear.py`` of vLLM 0.31.0, and the files of its models).
_BY_HEADS = frozenset({"k_proj", "v_proj"})
_WHOLE = frozenset(
    {
        "compressor",
        "f_a_proj",
        "g_a_proj",
        "index_k_proj",
        "index_q_proj",
        "kv_a_proj_with_mqa",
        "per_layer_input_gate",
        "per_layer_projection",
        "q_a_proj",
        "wkv",
        "wq_a",
    }
)


def _parts(path: str, name: str, kv_heads: int) -> int:
    if name in _WHOLE or not _WHOLE.isdisjoint(path.split(".")) or "indexer" in path.split("."):
        return 1
    return kv_heads if name in _BY_HEADS else 0


def joined(parts: Iterable[LayerPart]) -> LayerPart:
    """Return the parts of a layer as one."""
    each = tuple(parts)
    return LayerPart(
        tuple(matrix for part in each for matrix in part.matrices),
        sum(part.plain for part in each),
        sum(part.whole for part in each),
        tuple(group for part in each for group in part.cached),
    )
