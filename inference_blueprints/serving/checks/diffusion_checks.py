"""Checks whether a worker that makes images fits its devices, and loads the commit of the blueprint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.estimates.node_copies import reads_node_copy
from inference_blueprints.serving.performance import image_speed, images_per_second
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.wording import listing
from inference_catalog import Pipeline
from inference_contracts.errors import Finding
from inference_contracts.number_text import number
from inference_contracts.units import GIB

_SUGGESTED_INSTANCE_TYPES = 3


def diffusion_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check a worker that makes images; nothing for other workers.

    Yields: Errors, and a warning if the workers are slower than the peak, as far as a speed was published.
    """
    pipeline = resolved.shape.pipeline
    if pipeline is None or resolved.traffic.means.images is None:
        return
    split = _split(resolved, pipeline)
    if split:
        yield Finding((*resolved.path, "tensorParallelSize"), split)
        return
    memory = worker_memory(resolved)
    if not memory.fits:
        yield Finding((*resolved.path, "tensorParallelSize"), _does_not_fit(resolved, pipeline))
    # The rules report a file of GGUF, which has no copy.
    if not reads_node_copy(resolved) and not resolved.model.weights.gguf:
        yield Finding((*resolved.model_path, "weights"), _loads_main(resolved))
    slow = _too_slow(resolved)
    if slow:
        yield Finding((*resolved.path, "replicas"), slow, "warning")


def _split(resolved: ResolvedWorkers, pipeline: Pipeline) -> str | None:
    """Report devices that do not divide the transformer.

    ``validate_zimage_tp_constraints`` in ``vllm_omni/diffusion/models/z_image/z_image_transformer.py`` of
    vllm-omni 0.30.0.
    """
    size = resolved.tensor_parallel_size
    if size in pipeline.tensor_parallel_sizes:
        return None
    return (
        f"got {size}, but the engine splits the transformer of {resolved.shape.name} only over a number that "
        f"divides {listing(tuple(map(str, sorted(set(pipeline.split_sizes)))))}; allowed are "
        f"{', '.join(map(str, pipeline.tensor_parallel_sizes))}"
    )


def _does_not_fit(resolved: ResolvedWorkers, pipeline: Pipeline) -> str:
    """Report the needed and the available memory, and where the model fits."""
    memory = worker_memory(resolved)
    return (
        f"got {resolved.tensor_parallel_size}, but {resolved.shape.name} does not fit: each "
        f"{resolved.accelerator.core.name} needs {_gib(memory.weights_bytes)} for weights and "
        f"{_gib(memory.activation_bytes + memory.reserved_bytes)} for activations and reserve, and has "
        f"{_gib(memory.total_bytes)}; {_remedy(resolved, pipeline)}"
    )


def _remedy(resolved: ResolvedWorkers, pipeline: Pipeline) -> str:
    devices = min(each.accelerator_count for each in resolved.types)
    size = _smallest_size(resolved, pipeline, resolved.accelerator, devices)
    if size:
        return f"set tensorParallelSize: {size}"
    fitting = [
        f"{kind.name} with {minimum}"
        for kind in sorted(
            catalog.instance_types().values(), key=lambda each: each.usd_per_hour or float("inf")
        )
        if kind.accelerator
        and kind.accelerator.resource_name == resolved.accelerator.resource_name
        and (minimum := _smallest_size(resolved, pipeline, kind.accelerator, kind.accelerator_count))
    ]
    if not fitting:
        return "it fits no instance type in the catalogue; make images smaller, or fewer per request"
    return f"the cheapest types on which it fits: {', '.join(fitting[:_SUGGESTED_INSTANCE_TYPES])}"


def _smallest_size(
    resolved: ResolvedWorkers, pipeline: Pipeline, accelerator: catalog.Accelerator, devices: int
) -> int | None:
    """Return the smallest number of devices, up to a limit, on which the model fits; None without one."""
    for size in pipeline.tensor_parallel_sizes:
        workers = resolved.workers.model_copy(update={"tensor_parallel_size": size})
        candidate = replace(resolved, accelerator=accelerator, workers=workers)
        if size <= devices and worker_memory(candidate).fits:
            return size
    return None


def _loads_main(resolved: ResolvedWorkers) -> str:
    """Report weights that the engine would take from the newest main branch.

    ``omni_snapshot_download`` in ``vllm_omni/entrypoints/omni_base.py`` of vllm-omni 0.30.0 downloads a
    repository without a revision, whatever ``--revision`` says; a folder it takes as it is.
    """
    return (
        "vllmOmni downloads the newest main branch of a repository, whatever revision is set; set 'revision' "
        "to a commit of 40 hexadecimal digits, so that workers read the node's copy of it, and give pool "
        f"'{resolved.pool.name}' room for the copy (disk.sizeGib, disk.nodeCacheGib)"
    )


def _too_slow(resolved: ResolvedWorkers) -> str | None:
    """Report workers that are slower than the peak by a published speed; None if there is none."""
    speed, workload = image_speed(resolved), resolved.traffic.means
    if speed is None or workload.images is None:
        return None
    peak = images_per_second(resolved)
    enough = -(-peak // speed.images_per_second)
    if resolved.workers.maximum >= enough:
        return None
    return (
        f"got {resolved.workers.maximum}, but the peak is {number(peak)} images per second, and one worker "
        f"makes {speed.images_per_second:g} (published for vllmOmni {speed.engine_version}, {speed.source}); "
        f"set replicas: {enough:.0f}, or requests wait longer and longer"
    )


def _gib(count: float) -> str:
    return f"{count / GIB:.1f} GiB"
