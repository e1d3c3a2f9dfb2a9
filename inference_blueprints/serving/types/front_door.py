"""The front door of a plan: what Envoy and the policy process need, independent of the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inference_contracts.records import dataclass

if TYPE_CHECKING:
    from inference_contracts.door_configuration import DoorConfiguration


@dataclass(frozen=True, slots=True)
class DoorCluster:
    """A place to which the door sends requests. The target knows its addresses."""

    name: str
    """Name in Envoy's configuration and in `DoorTarget.cluster`: the release of the deployment."""
    model: str
    """Name of the model in the plan."""
    deployment: str
    """Name of the deployment within its model."""
    port: int
    """Port of its entry point."""


@dataclass(frozen=True, slots=True)
class DoorKeySet:
    """The keys with which an issuer signs tokens."""

    issuer: str
    """Address of the issuer."""
    audience: str
    """Audience that its tokens must have."""
    url: str | None
    """Address of the key set. None if `inline` has it."""
    inline: Mapping[str, Any] | None
    """The key set. None if it is fetched."""


@dataclass(frozen=True, slots=True)
class DoorPlan:
    """The front door of a platform."""

    host_name: str
    """Its address, such as ``api.models.example.com``."""
    configuration: DoorConfiguration
    """What the policy process is told."""
    clusters: tuple[DoorCluster, ...]
    """All places that targets of the configuration name."""
    key_sets: tuple[DoorKeySet, ...]
    """Keys of the issuers of `configuration.issuers`, in their order."""
    replicas: int
    """Replicas, each with one Envoy and one policy process."""
    vcpus: float
    """Processors of one replica."""
    memory_mib: int
    """Memory of one replica."""
    largest_body_bytes: int
    """Largest body of a request."""
    trace_ratio: float | None = None
    """Share of requests that are traced. None without traces."""
    has_batch: bool = False
    """Whether the platform has the batch API."""
