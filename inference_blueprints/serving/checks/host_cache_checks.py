"""Checks whether KV cache in the memory of the node fits there, and whether it is large enough to help."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.serving.engines.kv_transfer import kv_transfer
from inference_blueprints.serving.engines.lmcache import uses_lmcache
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.host_cache import host_cache_mib
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.node_copies import SIDECAR_MEMORY_MIB, uses_node_cache
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.nodes.node_share import node_share
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.errors import Finding
from inference_contracts.units import MIB, MIB_PER_GIB

# Allowance for the engine's own processes: the server, the scheduler, and for each device one with the CUDA
# libraries and the 4 GiB buffer for streamed weights.
_ENGINE_MIB = 8 * MIB_PER_GIB
_ENGINE_MIB_PER_DEVICE = 8 * MIB_PER_GIB
# LMCache's server: the CUDA libraries again, and data on its way to further tiers.
_LMCACHE_MIB = 8 * MIB_PER_GIB


def host_cache_findings(
    resolved: ResolvedWorkers, memory: MemoryEstimate, sizing: Sizing
) -> Iterator[Finding]:
    """Check the KV cache that a deployment's workers keep in the memory of their nodes.

    Parameters
    ----------
    resolved
        The workers. Their model fits the accelerators.
    memory
        Memory estimate of each of their accelerators.

    Yields
    ------
    Finding
        An error if the cache does not fit a worker's share of the node. A warning if it is smaller than the
        accelerators' cache, or if the router does not see its content.
    """
    if not host_cache_mib(resolved):
        return
    path = (*resolved.path[:3], "kvCache", "hostMemoryGib")
    too_much, too_little = _does_not_fit(resolved, memory), _holds_too_little(resolved, sizing)
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


def _does_not_fit(resolved: ResolvedWorkers, memory: MemoryEstimate) -> str | None:
    """Report that a worker's share of the node's memory is too small."""
    share = node_share(resolved.types, resolved.tensor_parallel_size).memory_mib
    share -= SIDECAR_MEMORY_MIB if uses_node_cache(resolved) else 0
    engine = _engine_mib(resolved, memory)
    if host_cache_mib(resolved) + engine <= share:
        return None
    most = (share - engine) // MIB_PER_GIB
    remedy = f"set at most {most}" if most > 0 else "leave kvCache out, or take a type with more memory"
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
