"""Checks that AWS's images for Neuron serve a model on its accelerators as the blueprint requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.estimates.node_copies import reads_node_copy
from inference_blueprints.serving.estimates.request_estimates import (
    request_seconds,
    worker_requests_per_second,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.wording import listing
from inference_catalog.neuron import NeuronRoute, device_groups, neuron_route
from inference_contracts.errors import Finding
from inference_contracts.units import GIB


def neuron_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check workers of the engine ``vllmNeuron``; those of other engines have no findings.

    Yields: Errors, each at the invalid key.
    """
    route = neuron_route(resolved.accelerator)
    if resolved.model.engine.vllm_neuron is None or route is None:
        return
    for path, check in _CHECKS:
        message = check(resolved, route)
        if message:
            of_model = path[0] in ("weights", "task", "kvCacheType", "engine")
            yield Finding((*(resolved.model_path if of_model else resolved.path), *path), message)
    health = resolved.blueprint.spec.gpu_health
    if health and health.slow_gpus:
        yield Finding(
            ("spec", "gpuHealth", "slowGpus"),
            f"got true, but slow devices of {resolved.accelerator.name} are not found: GPU health compares "
            "workers of GPUs only; broken ones are found",
            "warning",
        )
    if resolved.role != "aggregated":
        yield Finding(
            resolved.path,
            f"prefill and decode cannot be separate on {resolved.accelerator.name}: {route.disaggregation}; "
            "make the deployment 'aggregated'",
        )


def cache_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the plug-in starts with the memory that is left for the KV cache.

    Yields: At most one error.
    """
    route = neuron_route(resolved.accelerator)
    if resolved.model.engine.vllm_neuron is None or route is None:
        return
    left = worker_memory(resolved).kv_cache_bytes / GIB
    if left < route.least_kv_gib:
        yield Finding(
            (*resolved.path, "tensorParallelSize"),
            f"got {resolved.workers.tensor_parallel_size}, which leaves {left:.1f} GiB of each "
            f"{resolved.accelerator.core.name} for the KV cache; the plug-in starts with "
            f"{route.least_kv_gib:g} or more; raise it",
        )
    elif not route.block_size:
        yield from _place_findings(resolved)


def _place_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that each request at the peak has a place in the cache, which holds a longest request."""
    model, sizing = resolved.model, worker_sizing(resolved)
    rate = worker_requests_per_second(resolved, resolved.workers.maximum)
    needed = max(1, math.ceil(rate * request_seconds(resolved.traffic.means, model.objectives)))
    if sizing.max_num_seqs < needed:
        yield Finding(
            (*resolved.path, "replicas"),
            f"got {resolved.workers.maximum}, but at the peak each worker has {needed} requests at once and "
            f"places for {sizing.max_num_seqs}: on {resolved.accelerator.name} the KV cache of each sequence "
            f"is allocated for {sizing.max_model_len} tokens when the model is compiled; raise replicas or "
            "tensorParallelSize, or set the argument max-model-len to what the requests need",
        )


def _one_image(resolved: ResolvedWorkers, _: NeuronRoute) -> str | None:
    if resolved.engine.accelerators and resolved.accelerator.name not in resolved.engine.accelerators:
        return (
            f"its pools need two images of AWS: that of {listing(resolved.engine.accelerators)} does not run "
            f"on {resolved.accelerator.name}; make one model per image"
        )
    return None


def _block_is_planned(resolved: ResolvedWorkers, _: NeuronRoute) -> str | None:
    given = "block-size" in resolved.model.engine.arguments
    return "the plan sets 'block-size' itself, as AWS's documentation requires; remove it" if given else None


def _prefixes_are_planned(resolved: ResolvedWorkers, route: NeuronRoute) -> str | None:
    if "enable-prefix-caching" not in resolved.model.engine.arguments:
        return None
    state = "on" if route.prefix_caching else "off"
    return f"it is {state} on {resolved.accelerator.name}: {route.prefix_caching_reason}; remove it"


def _serves_architecture(resolved: ResolvedWorkers, route: NeuronRoute) -> str | None:
    architecture = resolved.shape.architecture
    if architecture in route.architectures:
        return None
    why = route.left_out.get(architecture)
    reason = why or "AWS's documentation does not list it"
    return (
        f"got {resolved.shape.name} ({architecture}) on {resolved.accelerator.name}: {reason}; served there "
        f"are {listing(tuple(route.architectures))}"
    )


def _has_files(resolved: ResolvedWorkers, route: NeuronRoute) -> str | None:
    why = route.read_from_files.get(resolved.shape.architecture)
    if why is None or reads_node_copy(resolved):
        return None
    return (
        f"got {resolved.shape.name} by its name on the Hub, which fails on "
        f"{resolved.accelerator.name} ({why}); "
        "set 'revision' to a commit and 'mirror: {}', so that workers load its files"
    )


def _loads_weights(resolved: ResolvedWorkers, route: NeuronRoute) -> str | None:
    if resolved.shape.architecture not in route.architectures:
        return None
    kind = resolved.shape.weight_type
    if kind in route.weight_types:
        return None
    return (
        f"got weights in {kind}, which vLLM does not load on {resolved.accelerator.name}; serve a repository "
        f"in {' or '.join(route.weight_types)}"
    )


def _writes_text(resolved: ResolvedWorkers, _: NeuronRoute) -> str | None:
    if resolved.model.task == "generate":
        return None
    return (
        f"got '{resolved.model.task}', which is not planned on Neuron here; set the engine vllm, on a pool "
        "of GPUs"
    )


def _caches_in_type(resolved: ResolvedWorkers, route: NeuronRoute) -> str | None:
    if resolved.model.kv_cache_type == "auto" or (
        route.name == "plugin" and resolved.model.kv_cache_type == "fp8"
    ):
        return None
    return (
        f"got '{resolved.model.kv_cache_type}', {resolved.accelerator.name} has only 'auto' here; remove it"
    )


def _has_one_stage(resolved: ResolvedWorkers, _: NeuronRoute) -> str | None:
    if resolved.pipeline_parallel_size == 1:
        return None
    return (
        f"got {resolved.pipeline_parallel_size}, but vLLM on Neuron has no pipeline parallelism "
        "(model-recipes/llama-3.md); raise tensorParallelSize"
    )


def _has_one_rank(resolved: ResolvedWorkers, _: NeuronRoute) -> str | None:
    if resolved.data_parallel_size == 1:
        return None
    return (
        f"got {resolved.data_parallel_size}, but AWS recommends several servers instead of ranks, whose "
        "throughput does not scale (model-recipes/llama-3.md, Known issues); raise replicas"
    )


def _devices_are_connected(resolved: ResolvedWorkers, _: NeuronRoute) -> str | None:
    devices = resolved.accelerators_per_node
    for each in resolved.types:
        sizes = device_groups(each)
        if sizes and devices not in sizes:
            allowed = " or ".join(map(str, sizes))
            return (
                f"got {devices} devices, but on {each.name} only {allowed} are connected to each other and "
                "may be requested together; use one of these"
            )
    return None


_Check = Callable[[ResolvedWorkers, NeuronRoute], str | None]
_CHECKS: tuple[tuple[tuple[str, ...], _Check], ...] = (
    (("engine",), _one_image),
    (("engine", "vllmNeuron", "args", "block-size"), _block_is_planned),
    (("engine", "vllmNeuron", "args", "enable-prefix-caching"), _prefixes_are_planned),
    (("weights",), _serves_architecture),
    (("weights",), _loads_weights),
    (("weights",), _has_files),
    (("task",), _writes_text),
    (("kvCacheType",), _caches_in_type),
    (("pipelineParallelSize",), _has_one_stage),
    (("dataParallelSize",), _has_one_rank),
    (("tensorParallelSize",), _devices_are_connected),
)
