"""Computes the transfer time of a prompt's KV cache from a prefill to a decode worker."""

from __future__ import annotations

from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import InstanceType

_BYTES_PER_MEGABIT = 125_000


def transfer_bytes(prefill: ResolvedWorkers) -> float:
    """Return the KV cache of a mean prompt on all devices of the worker together, in bytes.

    prefill: The sending workers.
    """
    memory = worker_memory(prefill)
    # Latent attention is stored whole on every device, and one copy moves.
    copies = 1 if prefill.shape.attention == "mla" else prefill.tensor_parallel_size
    copies *= prefill.pipeline_parallel_size
    return prefill.model.workload.input_tokens * memory.kv_bytes_per_token * copies


def transfer_seconds(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> float:
    """Return the least transfer time in seconds, over the slower worker's share of its node's network.

    prefill, decode: The workers of both roles.
    """
    return transfer_bytes(prefill) / transfer_bytes_per_second(prefill, decode)


def transfer_bytes_per_second(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> float:
    """Return the highest transfer rate, in bytes per second."""
    return min(_bytes_per_second(prefill), _bytes_per_second(decode))


def _bytes_per_second(resolved: ResolvedWorkers) -> float:
    """Return a worker's network share on the pool's slowest type: all cards with EFA, else one."""
    return min(_share(each, resolved) for each in resolved.types)


def _share(instance_type: InstanceType, resolved: ResolvedWorkers) -> float:
    cards = 1 if resolved.pool.efa else max(1, instance_type.network_cards)
    # A request occupies the devices of one data parallel rank.
    part = resolved.rank_accelerators / instance_type.accelerator_count
    return instance_type.network_bandwidth_mbps / cards * _BYTES_PER_MEGABIT * part
