"""Figures of pools, processes, memory and cold starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """One pool: its limits and its use by the plan.

    Parameters
    ----------
    instance_types
        Allowed EC2 instance types.
    purchase
        Purchase option, with the blueprint's key, such as ``onDemand`` or ``spot``.
    node_image
        Operating system of its nodes and its release, such as ``Bottlerocket v1.66.0``.
    root_volume_gib
        Space of the operating system itself on EBS, in GiB.
    is_managed_by_ecs
        Whether ECS Managed Instances run its nodes.
    pairs_efa_with_gpus
        Whether a worker with a part of a node gets the EFA interfaces beside its GPUs.
    reckoned_instance_type
        Type assumed for the used nodes: the cheapest that fits every worker. None if no node is used.
    accelerator
        Kind of device, such as ``l40s``; None if it has none.
    nodes_used, nodes_max
        Nodes that the plan's workers use or that are kept, and the maximum of the blueprint.
    accelerators_used, accelerators_max
        Devices that workers use, and devices of ``nodes_max`` nodes of the largest type.
    usd_per_hour_used, usd_per_hour_max
        Price of the used nodes, and the most that ``nodes_max`` nodes of the most expensive type can cost;
        None if unknown.
    usd_per_hour_used_at_most
        The most that the used nodes can cost; None if there is no known bound.
    nodes_idle, accelerators_idle
        Kept nodes without a worker, and devices of the used nodes that no worker holds.
    """

    name: str
    instance_types: tuple[str, ...]
    purchase: str
    node_image: str
    root_volume_gib: int
    is_managed_by_ecs: bool
    pairs_efa_with_gpus: bool
    reckoned_instance_type: str | None
    accelerator: str | None
    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None
    usd_per_hour_used_at_most: float | None
    nodes_idle: int
    accelerators_idle: int


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """One kind of process.

    Parameters
    ----------
    model, deployment, name
        Its model, deployment and name.
    replicas_least, replicas
        Smallest and largest number of replicas; equal unless it is elastic.
    accelerators, nodes
        Devices and nodes per replica.
    pool
        Pool on which it runs; None for the system nodes, ``Fargate`` for tasks of ECS without a pool.
    """

    model: str
    deployment: str
    name: str
    replicas_least: int
    replicas: int
    accelerators: int
    pool: str | None
    image: str
    nodes: int

    @property
    def replica_range(self) -> str:
        """Number of replicas in words."""
        least, most = self.replicas_least, self.replicas
        return str(most) if least == most else f"{least} to {most}"


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """Use of device memory by one worker.

    Parameters
    ----------
    model, deployment
        The worker's deployment; ``deployment/role`` if it is disaggregated.
    accelerator_bytes
        Memory of one device.
    weights_bytes, activation_bytes, reserved_bytes, kv_cache_bytes
        Parts of it in bytes, without the part that the engine may not use.
    kv_bytes_per_token
        KV cache of a token on one device.
    kv_cache_tokens
        Capacity of the worker's KV cache in tokens.
    host_kv_tokens, nvme_kv_tokens
        Capacity in host memory and on NVMe, in tokens.
    shared_kv_usd
        US dollars per million tokens in S3, until they expire; None if S3 is not used.
    concurrent_requests
        Requests of the stated mean length that run at once, limited by the KV cache and by the engine's
        maximum number of sequences.
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
    """Workers of a deployment per node, and the limiting resource.

    Parameters
    ----------
    pool, model, deployment, instance_type
        The worker and the type.
    limited_by
        ``devices``, ``vCPUs``, ``memory``, ``EFA interfaces`` or ``pods``.
    stranded_devices
        Devices of a node that stay idle because another resource is used up.
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
    """Time from a waiting worker until it serves, on a new node of a pool.

    Parameters
    ----------
    pool, model, deployment, instance_type
        The worker, and the assumed type of the pool.
    workers_on_the_node
        Workers that start at once and share the node's network and disk.
    launch_seconds
        Time from the request to a ready node; None if unknown.
    launch_basis, engine_basis
        Where a time is from: ``measured`` by the user, ``published`` by others, or ``unknown``.
    engine_seconds
        Time of the engine until it serves; None if unknown.
    image_bytes, image_seconds
        Size and time of the image; None if unknown.
    image_seconds_per_gb
        Time per GB of the image.
    image_from
        Source of the image: ``registry``, compressed, or an EBS ``snapshot``, unpacked.
    weights_bytes, weights_seconds
        Size and time of the weights of all workers of the node.
    weights_from
        Source of the weights, and the limiting resource.
    """

    pool: str
    model: str
    deployment: str
    instance_type: str
    workers_on_the_node: int
    launch_seconds: float | None
    launch_basis: str
    engine_seconds: float | None
    engine_basis: str
    image_bytes: int | None
    image_seconds: float | None
    image_seconds_per_gb: float
    image_from: Literal["registry", "snapshot"]
    weights_bytes: int
    weights_seconds: float
    weights_from: str

    @property
    def known_seconds(self) -> float:
        """Time of all parts that are known."""
        parts = (self.launch_seconds, self.image_seconds, self.weights_seconds, self.engine_seconds)
        return sum(part for part in parts if part is not None)

    @property
    def dominated_by(self) -> str:
        """The longer transfer, and the image size above which an unknown image would take longer."""
        if self.image_seconds is not None:
            return "image" if self.image_seconds > self.weights_seconds else "weights"
        most = self.weights_seconds / self.image_seconds_per_gb
        form = " unpacked" if self.image_from == "snapshot" else ""
        return f"weights, unless the image is larger than {most:.1f} GB{form}"
