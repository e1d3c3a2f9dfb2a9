"""Checks whether accelerators can share a model, and whether its longest request holds its images."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.errors import Finding


def shape_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the model splits evenly.

    If there are fewer KV heads than devices, they are replicated evenly.

    Yields: At most one error.
    """
    size, shape = resolved.tensor_parallel_size, resolved.device_shape
    if _splits(resolved, size):
        return
    cores, devices = resolved.accelerator.cores, resolved.workers.tensor_parallel_size
    maximum = shape.attention_heads // cores
    sizes = [str(each) for each in range(1, maximum + 1) if _splits(resolved, each * cores)]
    allowed = f"allowed are {', '.join(sizes)}" if sizes else "lower dataParallelSize"
    whole = "with expertParallel each device has whole experts; " if shape.experts else ""
    hint = whole if _heads_divide(shape, size) else ""
    split = f"{devices} devices with {size} NeuronCores" if cores > 1 else str(size)
    message = f"got {split}, but {shape.name} has {_parts(shape, size)}; {hint}{allowed}"
    yield Finding((*resolved.path, "tensorParallelSize"), message)


def _splits(resolved: ResolvedWorkers, size: int) -> bool:
    """Whether heads divide evenly, and slices of experts or layers consist of whole blocks."""
    slices = 1 if resolved.workers.expert_parallel else size * resolved.data_parallel_size
    return _heads_divide(resolved.shape, size) and _blocks_stay_whole(resolved.device_shape, slices)


def _heads_divide(shape: catalog.Model, size: int) -> bool:
    whole = shape.attention == "mla" or shape.kv_heads % size == 0 or size % shape.kv_heads == 0
    return whole and shape.attention_heads % size == 0


def _blocks_stay_whole(shape: catalog.Model, size: int) -> bool:
    """Whether a device holds whole blocks of weights that share a scale.

    `validate_fp8_block_shape` in ``layers/quantization/utils/fp8_utils.py`` of vLLM, and for groups
    `verify_marlin_supports_shape` in ``marlin_utils.py`` beside it.
    """
    return not shape.weight_block or shape.feed_forward_size % (size * shape.weight_block) == 0


def _parts(shape: catalog.Model, size: int) -> str:
    """Name the parts that do not divide evenly."""
    if _heads_divide(shape, size):
        layer = "experts" if shape.experts else "layers"
        return (
            f"{shape.weight_type.upper()} {layer} of width {shape.feed_forward_size}, and each device must "
            f"hold whole blocks of {shape.weight_block}"
        )
    heads = f"{shape.attention_heads} attention heads"
    if shape.attention == "gqa":
        heads += f" and {shape.kv_heads} KV heads"
    return f"{heads}, which must divide evenly"


def media_findings(resolved: ResolvedWorkers, sizing: Sizing) -> Iterator[Finding]:
    """Check that a request with the most allowed images leaves room for its answer.

    Yields: At most one error.
    """
    media, answer = resolved.model.media, resolved.model.workload.output_tokens
    if media is None:
        return
    images = media.images_per_request * media.tokens_per_image
    if images + answer <= sizing.max_model_len:
        return
    message = (
        f"got {media.images_per_request} images of {media.tokens_per_image} tokens, {images} in total; with "
        f"an answer of {answer}, this exceeds the {sizing.max_model_len} tokens that a worker of "
        f"'{resolved.label}' accepts; lower one of them, or raise {engine_of(resolved).argument_names.length}"
    )
    yield Finding((*resolved.model_path, "media", "imagesPerRequest"), message)
