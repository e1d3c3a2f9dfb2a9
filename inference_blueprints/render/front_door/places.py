"""Where the parts of a replica of the front door are: the target knows, the plan does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference_blueprints.render.envoy.parts import CertificateFiles, Peer
from inference_contracts.records import dataclass

#: Paths of the batch API, which has an authorizer of its own.
BATCH_PATHS: Final = ("/v1/batches", "/v1/files", "/v1/uploads")


@dataclass(frozen=True, slots=True)
class UpstreamPlace:
    """Where a server is that the door connects to."""

    host: str
    """Host name or IP address. A host name is resolved again and again, and each address is an endpoint."""
    port: int
    peer: Peer | None = None
    """Whom the server must be. None for a plain connection, which is for one machine only."""
    own: CertificateFiles | None = None
    """Certificate that the door shows (mutual TLS)."""
    server_name: str = ""
    """Name that is asked for (SNI). Without it, `host`."""


@dataclass(frozen=True, slots=True)
class DoorPlaces:
    """Addresses and files of one replica."""

    address: str
    port: int
    """`address`, `port`: Where Envoy listens."""
    certificate: CertificateFiles | None
    """Certificate that callers see. None for a plain listener, which is for one machine only."""
    files: str
    """Folder in which the policy process replaces the files of `door_object.FILES`."""
    policy_socket: str
    """Unix socket of the policy process."""
    admin_socket: str
    """Unix socket of Envoy's administration."""
    access_log: str
    """File from which the policy process settles."""
    clusters: Mapping[str, UpstreamPlace]
    """Where each cluster of the plan is."""
    trusted: str | None = None
    """PEM file with the issuers of the certificates of the servers from which key sets are fetched. Needed if
    one is."""
    batch: UpstreamPlace | None = None
    """The batch API. None without one."""
    batch_prefix: str = ""
    """What its paths begin with: the stage of API Gateway, such as ``/prod``."""
    trusted_hops: int = 0
    """Load balancers in front of the door, whose ``x-forwarded-for`` is believed."""
    traces: UpstreamPlace | None = None
    """What receives spans by OTLP over HTTP. None if nothing does."""
    metrics_port: int | None = None
    """Port at `address` for Prometheus: the policy's metrics at ``/metrics``, Envoy's at ``/metrics/envoy``.
    None without."""
