"""How each deployment's workers fill the memory of their devices."""

from __future__ import annotations

from inference_blueprints.planning.types import MemorySummary
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.workload import unique_tokens
from inference_blueprints.spec.types import Blueprint, Workload


def summarise_memory(blueprint: Blueprint) -> tuple[MemorySummary, ...]:
    """Sum up the memory of one worker of every role of every deployment.

    Parameters
    ----------
    blueprint
        A valid blueprint.

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
    engine = ENGINES[resolved.model.engine.chosen]
    sizing, memory = engine.size(resolved), engine.memory(resolved)
    return MemorySummary(
        model=resolved.model.name,
        deployment=resolved.label,
        accelerator_bytes=resolved.accelerator.memory_bytes,
        weights_bytes=memory.weights_bytes,
        activation_bytes=memory.activation_bytes,
        reserved_bytes=memory.reserved_bytes,
        kv_cache_bytes=memory.kv_cache_bytes,
        kv_cache_tokens=sizing.kv_tokens,
        concurrent_requests=_concurrent_requests(resolved.model.workload, sizing),
    )


def _concurrent_requests(workload: Workload, sizing: Sizing) -> int:
    """Return how many mean requests run at once beside one copy of the prefix that they share."""
    shared_tokens = workload.input_tokens * workload.shared_prefix_ratio
    by_memory = int((sizing.kv_tokens - shared_tokens) // unique_tokens(workload))
    return max(0, min(by_memory, sizing.max_num_seqs))
