"""Checks whether a model fits the accelerators of its pool, with the KV cache that its workload needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import (
    engine_of,
    insisted_length,
    insisted_utilization,
    worker_memory,
    worker_sizing,
)
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate, kv_tokens_needed
from inference_blueprints.serving.estimates.request_estimates import (
    decode_seconds,
    longest_request_tokens,
    prefill_seconds,
    request_seconds,
)
from inference_blueprints.serving.estimates.traffic import worker_requests_per_second
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog.neuron import device_groups
from inference_contracts.errors import Finding
from inference_contracts.units import GIB

_TENSOR_PARALLEL_SIZES = (1, 2, 4, 8, 16)
_SUGGESTED_INSTANCE_TYPES = 3


def memory_findings(resolved: ResolvedWorkers) -> list[Finding]:
    """Check that weights, one request and the stated workload fit a deployment's workers.

    Parameters
    ----------
    resolved
        The deployment; its engine arguments are free of errors.

    Returns
    -------
    list[Finding]
        At most one error: one request does not fit, or else the workload does not fit. And a warning if the
        workload's longest requests do not fit.
    """
    workload = resolved.model.workload
    if workload.input_tokens + workload.output_tokens > resolved.shape.context_length:
        return []  # the blueprint's own rules report this: no worker of any size serves such a request
    if resolved.accelerator.manufacturer != engine_of(resolved).manufacturer:
        return []  # other rules report this too: the engine does not run there
    memory = worker_memory(resolved)
    if (insisted_utilization(resolved) or 0) > 1:
        return [_overfull(memory, resolved)]
    if not _fits(memory, resolved):
        path = (*resolved.path, "tensorParallelSize")
        return [Finding(path, f"{_does_not_fit(memory, resolved)}; {_remedy(resolved)}")]
    return [*_sequence_findings(memory, resolved)] or [
        *_workload_findings(memory, resolved),
        *_tail_findings(memory, resolved),
    ]


def _sequence_findings(memory: MemoryEstimate, resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the sequences that the user sets fit, where each has a part of the cache of its own."""
    engine, sizing = engine_of(resolved), worker_sizing(resolved)
    name, length = engine.argument_names.sequences, sizing.max_model_len
    given = resolved.model.engine.arguments.get(name)
    if given is None or engine.places(resolved, memory.kv_tokens, length) is None:
        return
    if sizing.max_num_seqs * length > memory.kv_tokens:
        message = (
            f"got {given}, but the cache of a worker holds {memory.kv_tokens} tokens, and each of the "
            f"sequences has a part for {length} of them; set at most {max(1, memory.kv_tokens // length)}"
        )
        path = (*resolved.model_path, "engine", resolved.model.engine.chosen, "args", name)
        yield Finding(path, message)


def _tail_findings(memory: MemoryEstimate, resolved: ResolvedWorkers) -> list[Finding]:
    """Warn if the KV cache truncates the longest requests of the workload."""
    longest = min(longest_request_tokens(resolved.model.workload), resolved.shape.context_length)
    insisted = insisted_length(resolved)
    if insisted or memory.kv_tokens >= longest:
        return []
    message = (
        f"the KV cache of a worker holds {memory.kv_tokens} tokens, so longer requests are refused, but "
        f"requests of this workload may have {longest}; raise tensorParallelSize, or accept the limit by "
        f"setting {engine_of(resolved).argument_names.length}"
    )
    return [Finding((*resolved.path, "tensorParallelSize"), message, "warning")]


def _overfull(memory: MemoryEstimate, resolved: ResolvedWorkers) -> Finding:
    """Report that the engine's memory share leaves too little for memory that the share does not include."""
    name = engine_of(resolved).argument_names.memory_share
    path = (*resolved.model_path, "engine", resolved.model.engine.chosen, "args", name)
    share = resolved.model.engine.arguments[name]
    most = engine_of(resolved).memory_share(memory, resolved.accelerator.core.memory_bytes)
    needed = memory.activation_bytes + memory.reserved_bytes
    message = (
        f"got {share}, which leaves less of each {resolved.accelerator.core.name} than the {_gib(needed)} "
        f"that activations, graphs and libraries need in addition to weights and KV cache; set at "
        f"most {most:.2f}"
    )
    return Finding(path, message)


def _fits(memory: MemoryEstimate, resolved: ResolvedWorkers) -> bool:
    """Whether the weights and one request fit: the longest that the user sets, else a mean one."""
    return memory.kv_tokens >= _request_tokens(resolved)


def _request_tokens(resolved: ResolvedWorkers) -> int:
    """Return the length of a request that a worker must be able to hold."""
    insisted = insisted_length(resolved)
    return insisted or resolved.model.workload.input_tokens + resolved.model.workload.output_tokens


def _does_not_fit(memory: MemoryEstimate, resolved: ResolvedWorkers) -> str:
    """Report the needed and the available memory of one accelerator."""
    tokens = _request_tokens(resolved)
    request = tokens * memory.kv_bytes_per_token
    overhead = memory.activation_bytes + memory.reserved_bytes
    return (
        f"got {resolved.workers.tensor_parallel_size}, but {resolved.shape.name} does not fit: each "
        f"{resolved.accelerator.core.name} needs {_gib(memory.weights_bytes)} for weights, {_gib(overhead)} "
        f"for activations and reserve and {_gib(request)} for the KV cache of one request of {tokens} "
        f"tokens, and has {_gib(memory.total_bytes)}"
    )


def _remedy(resolved: ResolvedWorkers) -> str:
    """Suggest the smallest tensor parallel size that fits, else the cheapest instance types."""
    devices = min(instance_type.accelerator_count for instance_type in resolved.types)
    size = _smallest_size(resolved, devices)
    if size:
        return f"set tensorParallelSize: {size}"
    fitting = [
        f"{kind.name} with {size}" if kind.device_count else kind.name
        for kind in sorted(catalog.instance_types().values(), key=_price)
        if kind.accelerator
        and kind.accelerator.resource_name == resolved.accelerator.resource_name
        and (size := _smallest_size(_moved(resolved, kind, kind.accelerator), kind.accelerator_count))
    ]
    if not fitting:
        spans = engine_of(resolved).spans_nodes
        several = "several nodes with pipelineParallelSize, or " if spans else ""
        return (
            f"it does not fit on one node of any instance type in the catalogue; use {several}a smaller "
            "model or weight type"
        )
    several = ", but it may fit on several with pipelineParallelSize" if resolved.pool.efa else ""
    types = ", ".join(fitting[:_SUGGESTED_INSTANCE_TYPES])
    return f"it does not fit on one node of this pool{several}; the cheapest types on which it fits: {types}"


def _moved(
    resolved: ResolvedWorkers, kind: catalog.InstanceType, accelerator: catalog.Accelerator
) -> ResolvedWorkers:
    """Return the workers on another instance type."""
    return replace(resolved, types=(kind,), accelerator=accelerator)


def _smallest_size(resolved: ResolvedWorkers, devices: int) -> int | None:
    """Return the smallest tensor parallel size that fits and that a node can give; None if none does."""
    cores = resolved.accelerator.cores
    for size in _TENSOR_PARALLEL_SIZES:
        given = all(
            each.accelerator_count % size == 0 and size in (device_groups(each) or (size,))
            for each in resolved.types
        )
        if given and size <= devices and resolved.shape.attention_heads % (size * cores) == 0:
            candidate = _with_size(resolved, size)
            if _fits(worker_memory(candidate), candidate):
                return size
    return None


def _with_size(resolved: ResolvedWorkers, size: int) -> ResolvedWorkers:
    return replace(resolved, workers=resolved.workers.model_copy(update={"tensor_parallel_size": size}))


def _workload_findings(memory: MemoryEstimate, resolved: ResolvedWorkers) -> list[Finding]:
    """Check that the KV cache of all workers holds the concurrent requests at the peak."""
    model = resolved.model
    workers = resolved.workers.most
    needed = {replicas: _kv_tokens(resolved, replicas) for replicas in (workers, *_more(workers))}
    if memory.kv_tokens >= needed[workers]:
        return []
    ranks = resolved.data_parallel_size
    each = "worker" if ranks == 1 else f"of a worker's {ranks} ranks"
    enough = next((replicas for replicas, tokens in needed.items() if tokens <= memory.kv_tokens), None)
    remedy = f"set replicas: {enough}" if enough else "lower the peak or raise tensorParallelSize"
    message = (
        f"got {workers}, but at the peak of "
        f"{model.workload.peak_requests_per_second:g} requests per second each {each} must hold "
        f"{needed[workers]} tokens of KV cache (requests per second times "
        f"{_held_seconds(resolved):.1f} s per request, by Little's law) and has room "
        f"for {memory.kv_tokens}; {remedy}"
    )
    return [Finding((*resolved.path, "replicas"), message)]


def _more(workers: int) -> Iterator[int]:
    """Yield growing numbers of workers to try."""
    tried = workers
    while tried < workers * 1000:
        tried += max(1, tried // 10)
        yield tried


def _kv_tokens(resolved: ResolvedWorkers, workers: int) -> int:
    """Return the tokens that each rank must hold at the peak, for a number of workers."""
    workload = resolved.model.workload
    return kv_tokens_needed(
        input_tokens=workload.input_tokens,
        output_tokens=0 if resolved.role == "prefill" else workload.output_tokens,
        requests_per_second=worker_requests_per_second(resolved, workers * resolved.data_parallel_size),
        seconds_per_request=_held_seconds(resolved),
        shared_prefix_ratio=workload.shared_prefix_ratio,
    )


def _held_seconds(resolved: ResolvedWorkers) -> float:
    """Return the time that a worker of the role holds a mean request's KV cache, in seconds."""
    workload, objectives = resolved.model.workload, resolved.model.objectives
    if resolved.role == "prefill":
        return prefill_seconds(objectives)
    if resolved.role == "decode":
        return decode_seconds(workload, objectives)
    return request_seconds(workload, objectives)


def _price(instance_type: catalog.InstanceType) -> float:
    """Return a sort key that puts types without a known price last."""
    return instance_type.usd_per_hour or float("inf")


def _gib(count: float) -> str:
    """Format bytes as GiB."""
    return f"{count / GIB:.1f} GiB"
