"""Checks whether a model's heads and quantised layers can be split over the accelerators of a worker."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints import catalog
from inference_blueprints.errors import Finding
from inference_blueprints.serving.resolved import ResolvedWorkers

#: FP8 weights have one scale per block of 128 by 128 numbers, and a device holds whole blocks
#: (`validate_fp8_block_shape` in vLLM's ``layers/quantization/utils/fp8_utils.py``).
_FP8_BLOCK = 128


def shape_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the model splits evenly.

    If there are fewer KV heads than devices, they are replicated evenly.

    Yields
    ------
    Finding
        At most one error.
    """
    size, shape = resolved.tensor_parallel_size, resolved.shape
    if _splits(resolved, size):
        return
    sizes = [str(each) for each in range(1, shape.attention_heads + 1) if _splits(resolved, each)]
    allowed = f"allowed are {', '.join(sizes)}" if sizes else "lower dataParallelSize"
    whole = "with expertParallel each device has whole experts; " if shape.experts else ""
    hint = whole if _heads_divide(shape, size) else ""
    message = f"got {size}, but {shape.name} has {_parts(shape, size)}; {hint}{allowed}"
    yield Finding((*resolved.path, "tensorParallelSize"), message)


def _splits(resolved: ResolvedWorkers, size: int) -> bool:
    """Whether heads divide evenly, and slices of experts or layers consist of whole blocks."""
    slices = 1 if resolved.workers.expert_parallel else size * resolved.data_parallel_size
    return _heads_divide(resolved.shape, size) and _blocks_stay_whole(resolved.shape, slices)


def _heads_divide(shape: catalog.Model, size: int) -> bool:
    whole = shape.attention == "mla" or shape.kv_heads % size == 0 or size % shape.kv_heads == 0
    return whole and shape.attention_heads % size == 0


def _blocks_stay_whole(shape: catalog.Model, size: int) -> bool:
    return shape.weight_type != "fp8" or shape.feed_forward_size % (size * _FP8_BLOCK) == 0


def _parts(shape: catalog.Model, size: int) -> str:
    """Name the parts that do not divide evenly."""
    if _heads_divide(shape, size):
        layer = "experts" if shape.experts else "layers"
        return (
            f"FP8 {layer} of width {shape.feed_forward_size}, and each device must hold whole blocks of "
            f"{_FP8_BLOCK}"
        )
    heads = f"{shape.attention_heads} attention heads"
    if shape.attention == "gqa":
        heads += f" and {shape.kv_heads} KV heads"
    return f"{heads}, which must divide evenly"
