"""Estimates a worker's share of the disk of its node: weights, caches, and KV cache on NVMe.

If a type has NVMe, all of it is one disk for images and pods (``instanceStorePolicy: RAID0``). kubelet keeps
a tenth of it free: below that it evicts pods (its default, ``nodefs.available<10%``).
"""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.serving.estimates.cache_tiers import host_cache_mib
from inference_blueprints.serving.estimates.node_copies import (
    IMAGES_MIB,
    KEPT_FREE,
    node_cache_findings,
    node_cache_gib,
    nvme_mib,
    own_disk_mib,
    uses_node_cache,
)
from inference_blueprints.serving.nodes.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.weights_loading import STREAMING_ENGINES
from inference_blueprints.spec.types import NvmeKvCache
from inference_catalog import InstanceType
from inference_contracts.errors import Finding
from inference_contracts.units import MIB_PER_GIB


def worker_disk_mib(resolved: ResolvedWorkers) -> int:
    """Return the disk that a worker needs in addition to its image, in MiB."""
    return own_disk_mib(resolved) + nvme_cache_mib(resolved)


def nvme_cache_mib(resolved: ResolvedWorkers) -> int:
    """Return the size of a worker's KV cache on NVMe, in MiB; 0 without one.

    Without a size in the blueprint, it is a worker's share of the space that weights, caches and images leave
    free: the smallest over the pool's types, in whole GiB.
    """
    section = _section(resolved)
    if section is None:
        return 0
    return section.gib * MIB_PER_GIB if section.gib else _max_nvme_cache_mib(resolved)


def disk_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the nodes' disk holds the images and the files of every worker of a node.

    Yields: An error if it does not.
    """
    yield from node_cache_findings(resolved)
    found = _too_small(resolved)
    if found:
        yield Finding((*resolved.path, "pool"), found)
    elif section := _section(resolved):
        yield from _nvme_findings(resolved, section)


def _section(resolved: ResolvedWorkers) -> NvmeKvCache | None:
    """Return the blueprint's NVMe section; None for decode workers, which compute no prompts."""
    cache = resolved.model.kv_cache
    return cache.nvme if cache and resolved.role != "decode" else None


def _node_cache_mib(resolved: ResolvedWorkers) -> int:
    """Return the largest size of the cache that the workers of a node share, in MiB."""
    return node_cache_gib(resolved.blueprint, resolved.pool) * MIB_PER_GIB if uses_node_cache(resolved) else 0


def _replicas(resolved: ResolvedWorkers, instance_type: InstanceType) -> int:
    """Return the largest number of workers on a node."""
    return max(1, replicas_per_node(instance_type, resolved.accelerators_per_node))


def _too_small(resolved: ResolvedWorkers) -> str | None:
    """Report the type on which images and the workers' files other than KV cache do not fit."""
    can_stream = resolved.model.engine.chosen in STREAMING_ENGINES
    streamed = ", or stream the weights from S3" if can_stream else ""
    for instance_type in resolved.types:
        replicas = min(_replicas(resolved, instance_type), resolved.workers.maximum)
        needed = IMAGES_MIB + _node_cache_mib(resolved) + replicas * own_disk_mib(resolved)
        nvme = nvme_mib(resolved, instance_type)
        available = nvme or resolved.pool.disk.size_gib * MIB_PER_GIB
        if needed > available:
            gib = -(-needed // MIB_PER_GIB)
            remedy = "use an instance type with more" if nvme else f"set its disk.sizeGib to {gib}"
            return (
                f"got pool '{resolved.pool.name}', whose {instance_type.name} has "
                f"{available // MIB_PER_GIB} GiB of disk; the images and the files of {replicas} replicas "
                f"per node need {gib} GiB; {remedy}{streamed}"
            )
    return None


def _max_nvme_cache_mib(resolved: ResolvedWorkers) -> int:
    """Return the largest KV cache on NVMe, in MiB, that fits a worker's share on every type of its pool."""
    room = min(
        (int(nvme_mib(resolved, each) * (1 - KEPT_FREE)) - IMAGES_MIB - _node_cache_mib(resolved))
        // _replicas(resolved, each)
        for each in resolved.types
    )
    return max(0, room - own_disk_mib(resolved)) // MIB_PER_GIB * MIB_PER_GIB


def _nvme_findings(resolved: ResolvedWorkers, section: NvmeKvCache) -> Iterator[Finding]:
    """Check that NVMe exists, is large enough, and holds more KV cache than the memory tier before it."""
    path = (*resolved.model_path, "kvCache", "nvme", *(("gib",) if section.gib else ()))
    maximum, cache = _max_nvme_cache_mib(resolved) // MIB_PER_GIB, nvme_cache_mib(resolved) // MIB_PER_GIB
    memory = host_cache_mib(resolved) // MIB_PER_GIB
    without = [each.name for each in resolved.types if not nvme_mib(resolved, each)]
    if without:
        snapshot = resolved.pool.image_snapshot_id
        why = "with an image snapshot, files of pods are on EBS" if snapshot else "it has no NVMe disk"
        message = (
            f"got pool '{resolved.pool.name}', whose {without[0]} has no NVMe for pods: {why}; leave nvme "
            "out, or use types with NVMe and no snapshot"
        )
        yield Finding(path, message)
    elif cache > maximum or not cache:
        message = (
            f"got {cache}, but a worker of '{resolved.label}' has {maximum} GiB of a node's NVMe in pool "
            f"'{resolved.pool.name}' beside images, weights and caches; "
        )
        yield Finding(path, message + (f"set at most {maximum}" if maximum else "use types with more"))
    elif cache <= memory:
        message = (
            f"got {cache} behind {memory} GiB of memory; NVMe has a copy of the memory's content, so it adds "
            f"almost nothing; set at least {2 * memory}, or leave nvme out"
        )
        yield Finding(path, message, "warning")
