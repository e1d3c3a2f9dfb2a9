"""The paths at which a worker finds its node's copy of the weights, and the release's compiled kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from inference_blueprints.serving.estimates.node_copies import (
    SIDECAR_CPU,
    SIDECAR_MEMORY_MIB,
    node_cache_gib,
    reads_node_copy,
    uses_node_cache,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue, NodeCache
from inference_blueprints.serving.weights_loading import weights_environment, weights_source
from inference_catalog.catalogue import shipped

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
