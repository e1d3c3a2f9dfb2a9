"""Use of device memory by each deployment's workers."""

from __future__ import annotations

from inference_blueprints.report.figures import MemorySummary
from inference_blueprints.report.pricing.shared_cache_price import usd_per_million_tokens
from inference_blueprints.serving.engines.lmcache import chunk_tokens
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.estimates.host_cache import whole_kv_bytes_per_token
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.shared_cache import shared_cache
from inference_blueprints.serving.performance.role_capacity import concurrent_requests
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.spec.types import Blueprint


def summarise_memory(blueprint: Blueprint) -> tuple[MemorySummary, ...]:
    """Sum up the memory of one worker of every role of every deployment.

    Returns
    -------
    tuple of MemorySummary
        In the blueprint's order; the figures are those that the serving plan is sized with.
    """
    return tuple(
        _summarise_worker(resolved)
        for model_index, model in enumerate(blueprint.spec.models)
        for deployment_index in range(len(model.deployments))
        for resolved in resolve(blueprint, model_index, deployment_index)
    )


def _summarise_worker(resolved: ResolvedWorkers) -> MemorySummary:
    sizing, memory = worker_sizing(resolved), worker_memory(resolved)
    ranks = resolved.data_parallel_size
    return MemorySummary(
        model=resolved.model.name,
        deployment=resolved.label,
        accelerator_bytes=resolved.accelerator.core.memory_bytes,
        weights_bytes=memory.weights_bytes,
        activation_bytes=memory.activation_bytes,
        reserved_bytes=memory.reserved_bytes,
        kv_cache_bytes=memory.kv_cache_bytes,
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_cache_tokens=ranks * sizing.kv_tokens,
        host_kv_tokens=sizing.host_kv_tokens,
        nvme_kv_tokens=sizing.nvme_kv_tokens,
        shared_kv_usd=_shared_kv_usd(resolved, memory, sizing.block_size),
        concurrent_requests=ranks * concurrent_requests(resolved.model.workload, sizing),
    )


def _shared_kv_usd(resolved: ResolvedWorkers, memory: MemoryEstimate, block_size: int) -> float | None:
    bucket = shared_cache(resolved)
    if bucket is None:
        return None
    bytes_per_token = whole_kv_bytes_per_token(resolved, memory)
    return usd_per_million_tokens(
        bytes_per_token,
        expire_days=bucket.expire_days,
        tokens_per_object=chunk_tokens(resolved, block_size),
        objects_per_chunk=round(bytes_per_token / memory.kv_bytes_per_token),
    )
