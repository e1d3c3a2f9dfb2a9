"""Checks whether a model fits the accelerators of its pool, with the KV cache that its workload needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import inference_catalog as catalog
from inference_blueprints.serving.engines.kv_cache import kv_transfer, uses_lmcache
from inference_blueprints.serving.engines.worker_sizing import (
    engine_of,
    user_set_length,
    user_set_utilization,
    worker_memory,
    worker_sizing,
)
from inference_blueprints.serving.estimates.cache_tiers import host_cache_mib
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate, kv_tokens_needed
from inference_blueprints.serving.estimates.node_copies import SIDECAR_MEMORY_MIB, uses_node_cache
from inference_blueprints.serving.estimates.request_estimates import (
    decode_seconds,
    held_tokens,
    prefill_seconds,
    request_seconds,
    worker_requests_per_second,
)
from inference_blueprints.serving.estimates.request_lengths import parts
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.nodes.node_share import node_share
from inference_blueprints.serving.performance import fewest_replicas, serves_its_peak
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.known_callers import resources_beside
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.types import ReplicaRange
from inference_catalog.neuron import device_groups
from inference_contracts.errors import Finding
from inference_contracts.number_text import number
from inference_contracts.units import GIB, MIB, MIB_PER_GIB

_TENSOR_PARALLEL_SIZES = (1, 2, 4, 8, 16)
_SUGGESTED_INSTANCE_TYPES = 3
# Allowance for the engine's own processes: the server, the scheduler, and for each device one with the CUDA
# libraries and the 4 GiB buffer for streamed weights.
_ENGINE_MIB = 8 * MIB_PER_GIB
_ENGINE_MIB_PER_DEVICE = 8 * MIB_PER_GIB
# LMCache's server: the CUDA libraries again, and data on its way to further tiers.
_LMCACHE_MIB = 8 * MIB_PER_GIB


def memory_findings(resolved: ResolvedWorkers) -> list[Finding]:
    """Check that weights, one request and the stated workload fit a deployment's workers.

    resolved: The deployment; its engine arguments are free of errors.
    Returns: At most one error: one request does not fit, or else the workload does not fit. And a warning if
        the workload's longest requests do not fit.
    """
    workload = resolved.traffic.means
    if workload.input_tokens + workload.output_tokens > resolved.shape.context_length:
        return []  # the blueprint's own rules report this: no worker of any size serves such a request
    if resolved.accelerator.manufacturer != engine_of(resolved).manufacturer:
        return []  # other rules report this too: the engine does not run there
    memory = worker_memory(resolved)
    if (user_set_utilization(resolved) or 0) > 1:
        return [_overfull(memory, resolved)]
    if not _fits(memory, resolved):
        path = (*resolved.path, "tensorParallelSize")
        return [Finding(path, f"{_does_not_fit(memory, resolved)}; {_remedy(resolved)}")]
    found = [*_sequence_findings(memory, resolved)] or [
        *_workload_findings(memory, resolved),
        *_tail_findings(memory, resolved),
    ]
    return [*found, *_uncounted_states(resolved)]


def _uncounted_states(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Warn that an engine publishes no rule for the states of Mamba and linear attention."""
    engine, shape = engine_of(resolved), resolved.shape
    if engine.cache_rule == "every token" and any(each.kind == "state" for each in shape.cached_layers):
        message = (
            f"got {resolved.model.engine.chosen}, which does not publish how many states it keeps per "
            f"request of {shape.name}; the plan counts one. Measure the memory, or set vllm or sglang"
        )
        yield Finding((*resolved.model_path, "engine"), message, "warning")


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
    """Check that the KV cache, and an argument of the user, allow the longest requests.

    A stated maximum must fit. Four times the mean, which the library assumes without one, is a warning.
    """
    traffic, names = resolved.traffic, engine_of(resolved).argument_names
    longest = min(traffic.longest_request_tokens, resolved.shape.context_length)
    user_set = user_set_length(resolved)
    if user_set:
        assumed = traffic.longest.longest_tokens if traffic.longest else 0
        if traffic.states_longest or user_set >= min(assumed, resolved.shape.context_length):
            return []  # the checks of arguments report one below a stated maximum
        message = (
            f"got {user_set}, so longer requests are refused; without a stated maximum, requests of "
            f"'{resolved.label}' may have {assumed}, four times the mean; state 'max' of inputTokens and "
            "outputTokens, or raise it"
        )
        path = (*resolved.model_path, "engine", resolved.model.engine.chosen, "args", names.length)
        return [Finding(path, message, "warning")]
    stated = max((way.stated_tokens for way in traffic.ways if way.states_longest), default=0)
    fitting = memory.longest_request(max(longest, stated))
    if stated > fitting:
        message = (
            f"got {resolved.workers.tensor_parallel_size}, the KV cache of a worker holds one request of at "
            f"most {fitting} tokens, but the longest request has {stated}; raise it, or lower 'max'"
        )
        return [Finding((*resolved.path, "tensorParallelSize"), message)]
    if fitting >= longest:
        return []
    message = (
        f"the KV cache of a worker holds one request of at most {fitting} tokens, so longer requests are "
        f"refused, but requests of this workload may have {longest}; raise tensorParallelSize, or state how "
        "long they are by 'max' of inputTokens and outputTokens"
    )
    return [Finding((*resolved.path, "tensorParallelSize"), message, "warning")]


def _overfull(memory: MemoryEstimate, resolved: ResolvedWorkers) -> Finding:
    """Report that the engine's memory share leaves too little for memory that the share does not include."""
    name = engine_of(resolved).argument_names.memory_share
    path = (*resolved.model_path, "engine", resolved.model.engine.chosen, "args", name)
    share = resolved.model.engine.arguments[name]
    maximum = engine_of(resolved).memory_share(memory, resolved.accelerator.core.memory_bytes)
    needed = memory.activation_bytes + memory.reserved_bytes
    message = (
        f"got {share}, which leaves less of each {resolved.accelerator.core.name} than the {_gib(needed)} "
        f"that activations, graphs and libraries need in addition to weights and KV cache; set at "
        f"most {maximum:.2f}"
    )
    return Finding(path, message)


def _fits(memory: MemoryEstimate, resolved: ResolvedWorkers) -> bool:
    """Whether the weights and one request fit: the longest that the user sets, else a mean one."""
    return memory.request_bytes(_request_tokens(resolved)) <= memory.kv_cache_bytes


def _request_tokens(resolved: ResolvedWorkers) -> int:
    """Return the length of a request that a worker must be able to hold."""
    user_set = user_set_length(resolved)
    return user_set or resolved.traffic.means.input_tokens + resolved.traffic.means.output_tokens


def _does_not_fit(memory: MemoryEstimate, resolved: ResolvedWorkers) -> str:
    """Report the needed and the available memory of one accelerator."""
    tokens = _request_tokens(resolved)
    request = memory.request_bytes(tokens)
    overhead = memory.activation_bytes + memory.reserved_bytes
    name = engine_of(resolved).argument_names.memory_share
    share = resolved.model.engine.arguments.get(name)
    limit = "" if share is None else f" with '{name}' {share}"
    return (
        f"got {resolved.workers.tensor_parallel_size}, but {resolved.shape.name} does not fit: each "
        f"{resolved.accelerator.core.name} needs {_gib(memory.weights_bytes)} for weights, {_gib(overhead)} "
        f"for activations and reserve and {_gib(request)} for the KV cache of one request of {tokens:,} "
        f"tokens, and has {_gib(memory.total_bytes)}{limit}"
    )


def _remedy(resolved: ResolvedWorkers) -> str:
    """Suggest the smallest tensor parallel size that fits, else the cheapest instance types."""
    devices = min(instance_type.accelerator_count for instance_type in resolved.types)
    size = smallest_size(resolved, devices)
    if size:
        return f"set tensorParallelSize: {size}"
    fitting = [
        f"{kind.name} with {size}" if kind.device_count else kind.name
        for kind in sorted(catalog.instance_types().values(), key=_price)
        if kind.accelerator
        and kind.accelerator.resource_name == resolved.accelerator.resource_name
        and (size := smallest_size(moved(resolved, kind, kind.accelerator), kind.accelerator_count))
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


def moved(
    resolved: ResolvedWorkers, kind: catalog.InstanceType, accelerator: catalog.Accelerator
) -> ResolvedWorkers:
    """Return the workers on another instance type."""
    return replace(resolved, types=(kind,), accelerator=accelerator)


def smallest_size(resolved: ResolvedWorkers, devices: int) -> int | None:
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
    """Check that the KV cache of all workers holds the concurrent requests at the peak.

    Batch alone sends as many as fit, and has no objectives that say how long one may take.
    """
    workers, needed = resolved.workers.maximum, _kv_tokens(resolved)
    if memory.kv_tokens >= needed or not resolved.traffic.is_waited_for:
        return []
    ranks = resolved.data_parallel_size
    each = "worker" if ranks == 1 else f"of a worker's {ranks} ranks"
    # With fewer, the next check would ask for more.
    enough = fewest_replicas(
        resolved, lambda more: _kv_tokens(more) <= memory.kv_tokens and serves_its_peak(more) is not False
    )
    key = ("replicas", "max") if isinstance(resolved.workers.replicas, ReplicaRange) else ("replicas",)
    remedy = f"set {'.'.join(key)}: {enough}" if enough else "lower the peak or raise tensorParallelSize"
    message = (
        f"got {workers}, but at the peak of "
        f"{number(_peak(resolved))} requests per second each {each} must hold "
        f"{needed:,} tokens of KV cache (requests per second times "
        f"{_held_seconds(resolved):.1f} s per request, by Little's law) and has room "
        f"for {memory.kv_tokens:,}; {remedy}"
    )
    return [Finding((*resolved.path, *key), message)]


def _peak(resolved: ResolvedWorkers) -> float:
    """Return the requests per second of the model, over all its deployments."""
    return model_traffic(resolved.blueprint.spec, resolved.model).requests_per_second


def _kv_tokens(resolved: ResolvedWorkers) -> int:
    """Return the tokens that each rank must hold at the peak."""
    workload = resolved.traffic.means
    return kv_tokens_needed(
        shared_tokens=workload.input_tokens * workload.shared_prefix_ratio,
        held=held_tokens(parts(workload), resolved.model.objectives, writes=resolved.role != "prefill"),
        requests_per_second=worker_requests_per_second(
            resolved, resolved.workers.maximum * resolved.data_parallel_size
        ),
        seconds_per_request=_held_seconds(resolved),
    )


def _held_seconds(resolved: ResolvedWorkers) -> float:
    """Return the time that a worker of the role holds a mean request's KV cache, in seconds."""
    workload, objectives = resolved.traffic.means, resolved.model.objectives
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


def host_cache_findings(
    resolved: ResolvedWorkers, memory: MemoryEstimate, sizing: Sizing
) -> Iterator[Finding]:
    """Check the KV cache that a deployment's workers keep in the memory of their nodes.

    resolved: The workers. Their model fits the accelerators.
    memory: Memory estimate of each of their accelerators.
    Yields: An error if the cache does not fit a worker's share of the node. A warning if it is smaller than
        the accelerators' cache, or if the router does not see its content.
    """
    if not host_cache_mib(resolved):
        return
    path = (*resolved.path[:3], "kvCache", "hostMemoryGib")
    too_much, too_little = _does_not_fit_host(resolved, memory), _holds_too_little(resolved, sizing)
    if too_much:
        yield Finding(path, too_much)
    elif too_little:
        yield Finding(path, too_little, "warning")
    if uses_lmcache(resolved) and resolved.role == "prefill" and _reads_events(resolved):
        yield Finding((*resolved.model_path, "kvCache"), _untold(resolved), "warning")


def _reads_events(resolved: ResolvedWorkers) -> bool:
    """Whether the router uses the workers' cache events, and not its own record of requests."""
    llm_d = resolved.model.stack.llm_d
    return resolved.publishes_kv_events and (llm_d is None or llm_d.prefix_scorer == "precise")


def _untold(resolved: ResolvedWorkers) -> str:
    """Warn that LMCache's events reach the router only if LMCache is the only connector."""
    return (
        f"the router does not see the KV cache that '{resolved.label}' keeps outside its accelerators, "
        "because vLLM's MultiConnector does not forward LMCache's events; it sees the cache if only "
        "hostMemoryGib is set"
    )


def _does_not_fit_host(resolved: ResolvedWorkers, memory: MemoryEstimate) -> str | None:
    """Report that a worker's share of the node's memory is too small."""
    share = node_share(resolved.types, resolved.tensor_parallel_size).memory_mib
    share -= SIDECAR_MEMORY_MIB if uses_node_cache(resolved) else 0
    share -= resources_beside(resolved.blueprint.spec)[1] if resolved.model.stack.direct else 0
    engine = _engine_mib(resolved, memory)
    if host_cache_mib(resolved) + engine <= share:
        return None
    maximum = (share - engine) // MIB_PER_GIB
    remedy = f"set at most {maximum}" if maximum > 0 else "leave kvCache out, or take a type with more memory"
    return (
        f"got {host_cache_mib(resolved) // MIB_PER_GIB}, but a worker of '{resolved.label}' gets "
        f"{share // MIB_PER_GIB} GiB of a node's memory in pool '{resolved.pool.name}', of which the engine "
        f"itself takes {-(-engine // MIB_PER_GIB)} GiB; {remedy}"
    )


def _engine_mib(resolved: ResolvedWorkers, memory: MemoryEstimate) -> int:
    """Return the most memory of the node that the engine itself needs, in MiB."""
    engine = _ENGINE_MIB + _ENGINE_MIB_PER_DEVICE * resolved.tensor_parallel_size
    engine += _LMCACHE_MIB if uses_lmcache(resolved) else engine_of(resolved).host_cache_reserve_mib
    if kv_transfer(resolved) != "ucx":
        return engine
    # Without RDMA, each device block has a copy in the host's memory, from which it is sent.
    return engine + memory.kv_cache_bytes * resolved.tensor_parallel_size // MIB


def _holds_too_little(resolved: ResolvedWorkers, sizing: Sizing) -> str | None:
    """Warn that the accelerators' cache is larger than the host's, which holds copies of it."""
    if sizing.host_kv_tokens > sizing.kv_tokens:
        return None
    gib = host_cache_mib(resolved) // MIB_PER_GIB
    enough = -(-2 * gib * sizing.kv_tokens // max(1, sizing.host_kv_tokens))
    return (
        f"got {gib}, which holds {sizing.host_kv_tokens} tokens per worker of '{resolved.label}'; its "
        f"accelerators hold {sizing.kv_tokens} tokens, and the memory has copies of these, so it adds almost "
        f"nothing; set {enough} to hold twice as many tokens, or leave kvCache out"
    )
