"""Pools, processes and what they need, in figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """One pool: what it may hold and what the plan takes of it.

    Parameters
    ----------
    instance_types
        EC2 instance types it may hold.
    purchase
        How its nodes are paid for, in the blueprint's word: ``onDemand`` or ``spot``.
    reckoned_instance_type
        The type that the used nodes are reckoned with: the cheapest that holds every worker. None when no
        node is used.
    accelerator
        Kind of device, such as ``l40s``; None when it has none.
    nodes_used, nodes_max
        Nodes that the plan's workers fill or that are kept, and the most that the blueprint allows.
    accelerators_used, accelerators_max
        Devices that workers hold, and devices at ``nodes_max`` nodes of the largest type.
    usd_per_hour_used, usd_per_hour_max
        As the pool pays, for the used nodes and for ``nodes_max`` nodes of the dearest type; None when
        unknown.
    """

    name: str
    instance_types: tuple[str, ...]
    purchase: str
    reckoned_instance_type: str | None
    accelerator: str | None
    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """One kind of process.

    Parameters
    ----------
    model, deployment, name
        What it belongs to and its name there.
    accelerators, nodes
        Devices that each holds, and nodes that it spans.
    pool
        Pool whose nodes it runs on; None for the system nodes.
    """

    model: str
    deployment: str
    name: str
    replicas: int
    accelerators: int
    pool: str | None
    image: str
    nodes: int


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """How one worker fills the memory of each of its devices.

    Parameters
    ----------
    model, deployment
        Whose worker; where prefill and decode have workers of their own, as ``deployment/role``.
    accelerator_bytes
        Memory of one device.
    weights_bytes, activation_bytes, reserved_bytes, kv_cache_bytes
        Its parts on one device, in bytes; what the engine is not allowed to use is in none of them.
    kv_bytes_per_token
        What a token takes of it on one device.
    kv_cache_tokens
        Tokens that the worker's KV cache holds.
    host_kv_tokens, nvme_kv_tokens
        Tokens of it that the worker keeps in the memory of its node, and on its NVMe.
    shared_kv_usd
        US dollars for a million tokens of it in S3, until they expire; None where none are kept there.
    concurrent_requests
        Requests of the stated mean length that run at once: bounded by the KV cache and by the sequences that
        the engine is set to.
    """

    model: str
    deployment: str
    accelerator_bytes: int
    weights_bytes: int
    activation_bytes: int
    reserved_bytes: int
    kv_cache_bytes: int
    kv_bytes_per_token: float
    kv_cache_tokens: int
    host_kv_tokens: int
    nvme_kv_tokens: int
    shared_kv_usd: float | None
    concurrent_requests: int


@dataclass(frozen=True, slots=True)
class PodFit:
    """How many workers of a deployment one node holds, and what stops the next.

    Parameters
    ----------
    pool, model, deployment, instance_type
        Which worker on which type.
    limited_by
        ``devices``, ``vCPUs``, ``memory``, ``EFA interfaces`` or ``pods``.
    stranded_devices
        Devices of a node that are left without a worker for the lack of something else.
    """

    pool: str
    model: str
    deployment: str
    instance_type: str
    workers_per_node: int
    limited_by: str
    stranded_devices: int


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The least time from a waiting worker to its weights in memory, on a new node of a pool.

    Parameters
    ----------
    pool, model, deployment, instance_type
        Which worker, on the type that the pool is reckoned with.
    workers_on_the_node
        Workers that start at once and share the node's network and disk.
    launch_seconds
        From the request to a node that is ready; None: unknown.
    image_bytes, image_seconds
        What the node fetches for the image; None: unknown.
    image_seconds_per_gb
        What each GB of the image takes.
    image_from
        Where the image comes from: ``registry``, compressed, or an EBS ``snapshot``, unpacked.
    weights_bytes, weights_seconds
        What the node's workers load together.
    weights_from
        Where from, and what limits it.
    """

    pool: str
    model: str
    deployment: str
    instance_type: str
    workers_on_the_node: int
    launch_seconds: float | None
    image_bytes: int | None
    image_seconds: float | None
    image_seconds_per_gb: float
    image_from: Literal["registry", "snapshot"]
    weights_bytes: int
    weights_seconds: float
    weights_from: str

    @property
    def dominated_by(self) -> str:
        """The longest known step, and from which size on an unknown image would be longer."""
        if self.image_seconds is not None:
            return "image" if self.image_seconds > self.weights_seconds else "weights"
        most = self.weights_seconds / self.image_seconds_per_gb
        form = " unpacked" if self.image_from == "snapshot" else ""
        return f"weights, unless the image is over {most:.1f} GB{form}"
