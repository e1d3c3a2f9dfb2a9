"""Which workers share a copy of the weights and compiled kernels on their node, and how much disk it may use.

A worker that has its node to itself streams mirrored weights if its engine can: nothing would share the copy.
Workers that share a node read the copy, so the weights pass the network once.

All pools of a model share or none does: NIXL's connector refuses to move KV cache between workers that load
their model from different paths (``compute_nixl_compatibility_hash`` of vLLM).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

from inference_blueprints.serving.nodes.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers, UnresolvedError, resolve
from inference_blueprints.serving.types import EnvironmentValue, NodeCache
from inference_blueprints.serving.weights_loading import (
    can_stream,
    never_change,
    weights_environment,
    weights_source,
)
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.invalid_values import usable
from inference_catalog import InstanceType
from inference_catalog.catalogue import shipped
from inference_catalog.limits import hub_limits
from inference_contracts.errors import Finding
from inference_contracts.units import GB, MIB, MIB_PER_GIB

#: The unpacked runtime image, and the operating system, in MiB.
IMAGES_MIB = 40 * 1024
#: Part of a disk that stays free: kubelet needs a tenth, and the file system up to a fiftieth.
KEPT_FREE = 0.12
#: Memory of the program that fills and holds the node's cache, in MiB, and its vCPUs.
SIDECAR_MEMORY_MIB, SIDECAR_CPU = 1024, 1

# Compiled kernels of a worker, or of all workers of a release on a node.
_KERNELS_MIB = 20 * MIB_PER_GIB
# Temporary files of a worker that shares everything else.
_TEMPORARY_MIB = 2 * MIB_PER_GIB
# Files of a model besides its weights: tokenizer, configuration, documents.
_OTHER_FILES_MIB = 512


def uses_node_cache(resolved: ResolvedWorkers) -> bool:
    """Return whether the workers share compiled kernels, and weights unless they stream them."""
    return shares(resolved.blueprint, resolved.model)


def reads_node_copy(resolved: ResolvedWorkers) -> bool:
    """Return whether the workers load the weights from their node's copy."""
    return _wants_copy(resolved.blueprint, resolved.model) and uses_node_cache(resolved)


def weight_downloads(resolved: ResolvedWorkers) -> int:
    """Return how often workers fetch their weights: once per worker, or once per full node if they share."""
    pods = resolved.workers.maximum * resolved.nodes
    if not reads_node_copy(resolved):
        return resolved.workers.maximum
    return -(-pods // min(replicas_per_node(each, resolved.accelerators_per_node) for each in resolved.types))


#: Downloads and bytes from which a fleet's traffic from the Hub is said even below its limits.
_MANY_DOWNLOADS, _MANY_BYTES = 10, 2000 * GB


def hub_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Warn if workers that start together ask more of the Hub than it answers.

    Without a token, the Hub counts the requests of an address, here of each NAT gateway; with one, those of
    its user.

    Yields: At most one warning.
    """
    weights, limits = resolved.model.weights, hub_limits()
    if weights.in_s3 or not weights.hugging_face or weights.gguf:
        return
    size, downloads = resolved.shape.weight_bytes, weight_downloads(resolved)
    requests = downloads * limits.requests(size)
    zones = len(platform_zones(resolved.blueprint.spec.environment)) or 1
    if weights.token_secret_arn:
        share, limit, whose = requests, limits.user_requests, "the user of a token"
    else:
        share, limit, whose = -(-requests // zones), limits.anonymous_requests, "an address without a token"
    is_large = downloads >= _MANY_DOWNLOADS and size * downloads >= _MANY_BYTES
    if share <= limit and not is_large:
        return
    who = "nodes" if reads_node_copy(resolved) else "workers"
    through = "" if weights.token_secret_arn else f", {share:,} through each of {zones} NAT gateways"
    message = (
        f"{downloads} {who} download {size / GB:,.0f} GB each from the Hub, {size * downloads / GB:,.0f} GB "
        f"if all start, in at least {requests:,} requests{through}; the Hub answers {limit:,} in "
        f"{limits.window_minutes} minutes to {whose}, and 429 beyond them, with which a worker does not "
        "start; set 'mirror: {}' with a commit as 'revision', and the platform copies the repository once "
        "to S3"
    )
    yield Finding((*resolved.model_path, "weights"), message, "warning")


def streams_weights(resolved: ResolvedWorkers) -> bool:
    """Return whether the workers stream the weights from S3 into their accelerators."""
    return can_stream(resolved.model) and not reads_node_copy(resolved)


def shares(blueprint: spec.Blueprint, model: spec.Model) -> bool:
    """Return whether all pools of a model have a cache that its workers use.

    A server of GGUF has its node to itself and downloads one file of many, so nothing would share a copy.
    """
    if model.weights.gguf:
        return False
    names = _pool_names(model)
    pools = [pool for _, pool in usable(blueprint.spec.pools) if pool.name in names]
    if not pools or not all(node_cache_gib(blueprint, pool) for pool in pools):
        return False
    # A size in the blueprint is also meant for workers that share only compiled kernels.
    return _shares_by_default(model) or all(pool.disk.node_cache_gib for pool in pools)


def node_cache_gib(blueprint: spec.Blueprint, pool: spec.Pool) -> int:
    """Return the largest size of a node's cache, in GiB; 0 without one.

    Without a size in the blueprint, it has room for one copy of each model, a second one of the largest
    during a rollout of a new commit, and the kernels of each release. If a node lacks this room, each worker
    has its own files.
    """
    if pool.disk.node_cache_gib is not None:
        return pool.disk.node_cache_gib
    workers = _workers_of(blueprint, pool)
    if not any(_shares_by_default(each.model) for each in workers):
        return 0
    sizes = _copy_sizes(workers)
    wanted = sum(sizes) + max(sizes, default=0) + _kernels_mib(workers)
    fits = all(wanted <= _room_mib(workers, each) for each in workers[0].types)
    return -(-wanted // MIB_PER_GIB) if fits else 0


def own_disk_mib(resolved: ResolvedWorkers) -> int:
    """Return a worker's disk for everything but KV cache and the node's cache, in MiB."""
    return _own_disk_mib(resolved, cached=uses_node_cache(resolved))


def nvme_mib(resolved: ResolvedWorkers, instance_type: InstanceType) -> int:
    """Return the NVMe of a node in MiB; 0 if its pods' files lie on EBS."""
    if resolved.pool.image_snapshot_id:
        return 0
    return (instance_type.local_nvme_gb or 0) * GB // MIB


def node_cache_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the node's cache exists if the engine needs it, and that it holds all that is in use.

    Yields: An error if it does not; a warning if a rollout of a new commit would have to wait.
    """
    model, pool = resolved.model, resolved.pool
    if model.weights.mirror and not can_stream(model) and not uses_node_cache(resolved):
        reason = "is 0" if pool.disk.node_cache_gib == 0 else "has no room for it"
        message = (
            f"{model.engine.chosen} reads mirrored weights from the node's copy, and disk.nodeCacheGib of a "
            f"pool of this model {reason}; raise it or disk.sizeGib, or leave 'mirror' out"
        )
        yield Finding((*resolved.model_path, "weights", "mirror"), message)
    given = pool.disk.node_cache_gib
    if not given or not uses_node_cache(resolved):
        return
    workers = _workers_of(resolved.blueprint, pool)
    sizes, kernels = _copy_sizes(workers), _kernels_mib(workers)
    minimum = -(-(sum(sizes) + kernels) // MIB_PER_GIB)
    enough = -(-(sum(sizes) + max(sizes, default=0) + kernels) // MIB_PER_GIB)
    if given < minimum:
        message = (
            f"got pool '{pool.name}' with disk.nodeCacheGib {given}; the weights and compiled kernels of its "
            f"workers need {minimum}; set at least {enough}, which has room for a rollout, or leave it out"
        )
        yield Finding((*resolved.path, "pool"), message)
    elif given < enough:
        message = (
            f"got pool '{pool.name}' with disk.nodeCacheGib {given}; a rollout of a new commit needs "
            f"{enough}, because both copies are in use; set {enough}"
        )
        yield Finding((*resolved.path, "pool"), message, "warning")


def _own_disk_mib(resolved: ResolvedWorkers, *, cached: bool) -> int:
    files = _TEMPORARY_MIB if cached else _KERNELS_MIB
    if resolved.draft_file_bytes:
        # The engine downloads it into the worker's own files: the node's copy holds one repository.
        files += -(-resolved.draft_file_bytes // MIB) + _OTHER_FILES_MIB
    copied = cached and _wants_copy(resolved.blueprint, resolved.model)
    elsewhere = can_stream(resolved.model) or copied
    return files if elsewhere else files + resolved.shape.weight_bytes // MIB


def _shares_by_default(model: spec.Model) -> bool:
    """Whether the workers use the cache without a size in the blueprint: their files stay the same."""
    return model.weights.gguf is None and (never_change(model) or can_stream(model))


def _wants_copy(blueprint: spec.Blueprint, model: spec.Model) -> bool:
    """Whether the workers of a node read one copy, if the node has room for it."""
    return never_change(model) and (not can_stream(model) or _share_nodes(blueprint, model))


def _share_nodes(blueprint: spec.Blueprint, model: spec.Model) -> bool:
    """Whether two workers of a model fit a node."""
    roles = list(_resolved(blueprint, lambda each, _: each is model))
    fitting = [replicas_per_node(each, role.accelerators_per_node) for role in roles for each in role.types]
    return sum(role.workers.maximum for role in roles) > 1 and max(fitting, default=0) > 1


def _workers_of(blueprint: spec.Blueprint, pool: spec.Pool) -> list[ResolvedWorkers]:
    """Return the workers that run in a pool."""
    roles = _resolved(blueprint, lambda _, deployment: pool.name in _pools_of(deployment))
    return [role for role in roles if role.pool.name == pool.name]


def _resolved(
    blueprint: spec.Blueprint, wanted: Callable[[spec.Model, spec.Deployment], bool]
) -> Iterator[ResolvedWorkers]:
    """Iterate over the roles of some deployments, without those that name what is missing.

    To resolve a deployment takes long, so a function that needs few of them names those.

    wanted: Whether a deployment of a model is one of them.
    """
    for index, model in usable(blueprint.spec.models):
        for place, deployment in usable(model.deployments):
            if wanted(model, deployment):
                with contextlib.suppress(UnresolvedError):
                    yield from resolve(blueprint, index, place)


def _pools_of(deployment: spec.Deployment) -> set[str]:
    return {str(workers.pool) for workers in deployment.workers.values()}


def _pool_names(model: spec.Model) -> set[str]:
    return {name for _, deployment in usable(model.deployments) for name in _pools_of(deployment)}


def _copy_sizes(workers: list[ResolvedWorkers]) -> list[int]:
    """Return the size of each copy that a node may have, in MiB."""
    sizes = {
        (each.model.weights.hugging_face, each.model.weights.revision): each.shape.weight_bytes
        for each in workers
        if _wants_copy(each.blueprint, each.model)
    }
    return [-(-size // MIB) + _OTHER_FILES_MIB for size in sizes.values()]


def _kernels_mib(workers: list[ResolvedWorkers]) -> int:
    return _KERNELS_MIB * len({each.release for each in workers})


def _room_mib(workers: list[ResolvedWorkers], instance_type: InstanceType) -> int:
    """Return the part of a node's disk that images and the workers' own files leave."""
    disk = nvme_mib(workers[0], instance_type) or workers[0].pool.disk.size_gib * MIB_PER_GIB
    own = max(_node_files_mib(each, instance_type) for each in workers)
    return int(disk * (1 - KEPT_FREE)) - IMAGES_MIB - own


def _node_files_mib(resolved: ResolvedWorkers, instance_type: InstanceType) -> int:
    """Return the disk for the own files of as many workers as a node holds."""
    cache = resolved.model.kv_cache
    kept = (cache.nvme.gib or 0) * MIB_PER_GIB if cache and cache.nvme else 0
    each = _own_disk_mib(resolved, cached=_shares_by_default(resolved.model)) + kept
    return max(1, replicas_per_node(instance_type, resolved.accelerators_per_node)) * each


_MODELS, _COMPILED = "/models", "/compiled"
# Where the program that fills the copy finds the whole folder, and the file that its startup check reads.
_NODE, _READY = "/node", "/tmp/ready"  # noqa: S108 -- in a container of its own
# An attempt that takes longer is started again, and keeps the files that are complete.
_FILL_SECONDS = 6 * 3600
# CUDA Programming Guide, "CUDA Environment Variables"; PyTorch, "Compile Time Caching"; Triton, "Environment
# Variables"; ``flashinfer/jit/env.py``, which adds ``.cache/flashinfer``.
_KERNEL_FOLDERS: Mapping[str, str] = {
    "CUDA_CACHE_PATH": "cuda",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}


def model_location(resolved: ResolvedWorkers) -> str:
    """Return the model that the engine loads: the path of the node's copy, or else the Hub's repository."""
    repository = resolved.model.weights.hugging_face or ""
    return f"{_MODELS}/{repository}" if reads_node_copy(resolved) else repository


def kernel_environment(folders: Mapping[str, str]) -> dict[str, EnvironmentValue]:
    """Return the variables that place compiled kernels in the release's folder.

    folders: The engine's own variables, and the names of their folders.
    """
    return {name: f"{_COMPILED}/{folder}" for name, folder in {**_KERNEL_FOLDERS, **folders}.items()}


def node_cache(resolved: ResolvedWorkers, image: str) -> NodeCache | None:
    """Return the node's cache of a worker; None if it uses none.

    Kernels are programs, so each release has its own folder: a model cannot change what another one runs.
    Another image or accelerator is another folder.

    image: The worker's image.
    """
    import hashlib

    if not uses_node_cache(resolved):
        return None
    digest = hashlib.sha256(f"{image} {resolved.accelerator.name}".encode()).hexdigest()[:8]
    compiled = f"{resolved.release}@{digest}"
    environment: dict[str, EnvironmentValue] = {
        "NODE_CACHE_FOLDER": _NODE,
        "NODE_CACHE_GIB": str(node_cache_gib(resolved.blueprint, resolved.pool)),
        "NODE_CACHE_COMPILED": compiled,
        "NODE_CACHE_READY_FILE": _READY,
    }
    weights = resolved.model.weights
    name = None
    if reads_node_copy(resolved):
        name = f"{(weights.hugging_face or '').replace('/', '--')}@{weights.revision}"
        environment |= {
            "NODE_CACHE_WEIGHTS": name,
            **weights_source(weights),
            **weights_environment(weights),
        }
    return NodeCache(
        host_folder=shipped().bottlerocket.shared_folder,
        compiled=compiled,
        compiled_path=_COMPILED,
        cpu=SIDECAR_CPU,
        memory_mib=SIDECAR_MEMORY_MIB,
        fill_seconds=_FILL_SECONDS,
        weights=name,
        weights_path=model_location(resolved) if name else None,
        environment=environment,
    )
