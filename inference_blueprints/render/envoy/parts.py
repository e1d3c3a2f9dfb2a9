"""Parts of Envoy's configuration that the front door and the sidecars of frontends share.

Each function returns a part of a document of Envoy's API, version 3:
https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/api
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from inference_contracts.door_identities import ENVOY_AUTHORITY, ENVOY_CERTIFICATE, FILES
from inference_contracts.records import dataclass

Document = dict[str, Any]

_EXTENSIONS: Final = "type.googleapis.com/envoy.extensions."
_CONFIG: Final = "type.googleapis.com/envoy.config."
HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
#: Connections, requests and retries at a cluster: what waits is bounded by the callers' connections.
_MOST: Final = 100_000
_MOST_RETRIES: Final = 1_000


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate, its key and the authorities that count, in the files of `door_identities.FILES`."""

    folder: str
    """Their folder. Envoy reads them again when an entry of it is replaced, and cuts no connection."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom the other side of a connection must be."""

    authorities: CertificateFiles | str
    """Issuers of its certificate: those of a folder, or a PEM file that does not change."""
    names: tuple[str, ...] = ()
    """Names of which its certificate must have one: DNS names, or URIs such as ``spiffe://…``."""


def extension(name: str, kind: str, **fields: Any) -> Document:
    """Return an extension with its configuration.

    name: Name of the extension in this configuration.
    kind: Its type, without ``envoy.extensions.``.
    """
    return {"name": name, "typed_config": typed(kind, **fields)}


def typed(kind: str, **fields: Any) -> Document:
    """Return a configuration with its type, without ``envoy.extensions.``."""
    return {"@type": f"{_EXTENSIONS}{kind}", **fields}


def resources(kind: str, found: Iterable[Mapping[str, Any]]) -> Document:
    """Return the file that Envoy watches for resources.

    kind: ``listener.v3.Listener`` or ``cluster.v3.Cluster``.
    """
    return {"resources": [{"@type": f"{_CONFIG}{kind}", **each} for each in found]}


def watched(path: str, folder: str) -> Document:
    """Return where Envoy finds resources: in a file, which is replaced by a rename into its folder."""
    return {
        "resource_api_version": "V3",
        "path_config_source": {"path": path, "watched_directory": {"path": folder}},
    }


def socket(address: str, port: int) -> Document:
    """Return the address of a socket."""
    return {"socket_address": {"address": address, "port_value": port}}


def pipe(path: str) -> Document:
    """Return the address of a Unix socket."""
    return {"pipe": {"path": path}}


def matched(*names: str) -> Document:
    """Return a list of texts. One that ends with ``*`` stands for all that begin so."""
    return {
        "patterns": [
            {"prefix": name[:-1], "ignore_case": True}
            if name.endswith("*")
            else {"exact": name, "ignore_case": True}
            for name in names
        ]
    }


def cluster(
    name: str,
    addresses: Sequence[Mapping[str, Any]],
    *,
    transport: Mapping[str, Any] | None = None,
    http2: bool = False,
    connect_seconds: float = 2.0,
    **fields: Any,
) -> Document:
    """Return a cluster.

    addresses: Its endpoints. Host names are resolved again and again.
    transport: Its transport socket. None for plain connections.
    http2: Whether it speaks HTTP/2 only.
    """
    protocol: Document = {"http2_protocol_options": {}} if http2 else {"http_protocol_options": {}}
    found: Document = {
        "name": name,
        "connect_timeout": f"{connect_seconds}s",
        "type": "STRICT_DNS" if any(map(_is_name, addresses)) else "STATIC",
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": _MOST,
                    "max_pending_requests": _MOST,
                    "max_requests": _MOST,
                    "max_retries": _MOST_RETRIES,
                }
            ]
        },
        "typed_extension_protocol_options": {
            HTTP_OPTIONS: typed("upstreams.http.v3.HttpProtocolOptions", explicit_http_config=protocol)
        },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": each}} for each in addresses]}],
        },
        **fields,
    }
    if found["type"] == "STRICT_DNS":
        found["dns_lookup_family"] = "V4_PREFERRED"
        found["respect_dns_ttl"] = True
    if transport:
        found["transport_socket"] = dict(transport)
    return found


def upstream_tls(peer: Peer, server_name: str, own: CertificateFiles | None = None) -> Document:
    """Return the transport socket of a cluster with TLS 1.2 or later.

    server_name: Name that is asked for (SNI).
    own: Certificate that this side shows. None for TLS that is not mutual.
    """
    return extension(
        "envoy.transport_sockets.tls",
        "transport_sockets.tls.v3.UpstreamTlsContext",
        sni=server_name,
        common_tls_context=_tls_context(peer, own),
    )


def downstream_tls(
    own: CertificateFiles, peer: Peer | None = None, protocols: Sequence[str] = ()
) -> Document:
    """Return the transport socket of a listener with TLS 1.2 or later.

    peer: Whom callers must be. None if anybody may connect.
    protocols: Protocols that are offered (ALPN), such as ``h2``.
    """
    context = _tls_context(peer, own)
    if protocols:
        context["alpn_protocols"] = list(protocols)
    return extension(
        "envoy.transport_sockets.tls",
        "transport_sockets.tls.v3.DownstreamTlsContext",
        require_client_certificate=peer is not None,
        common_tls_context=context,
    )


def listener(
    name: str,
    address: Mapping[str, Any],
    filters: Sequence[Mapping[str, Any]],
    *,
    transport: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Document:
    """Return a listener with one chain of filters.

    transport: Its transport socket. None for plain connections.
    """
    chain: Document = {"filters": list(filters)}
    if transport:
        chain["transport_socket"] = dict(transport)
    return {"name": name, "address": dict(address), "filter_chains": [chain], **fields}


def _tls_context(peer: Peer | None, own: CertificateFiles | None) -> Document:
    """Return the part of TLS that both sides have.

    Envoy watches files only if the secret discovery service delivers them: ``watched_directory`` of
    `TlsCertificate`, and
    https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/security/secret#sds-configuration
    """
    context: Document = {"tls_params": {"tls_minimum_protocol_version": "TLSv1_2"}}
    if own:
        context["tls_certificate_sds_secret_configs"] = [
            _secret(ENVOY_CERTIFICATE, "envoy_certificate", own.folder)
        ]
    if peer is None:
        return context
    names = {"match_typed_subject_alt_names": [_name(each) for each in peer.names]} if peer.names else {}
    if isinstance(peer.authorities, str):
        context["validation_context"] = {"trusted_ca": {"filename": peer.authorities}, **names}
    else:
        context["combined_validation_context"] = {
            "default_validation_context": names,
            "validation_context_sds_secret_config": _secret(
                ENVOY_AUTHORITY, "envoy_authority", peer.authorities.folder
            ),
        }
    return context


def _secret(name: str, value: str, folder: str) -> Document:
    """Return a secret in the file of one of the values of `FILES`."""
    return {"name": name, "sds_config": watched(f"{folder}/{FILES[value]}", folder)}


def _name(name: str) -> Document:
    return {"san_type": "URI" if "://" in name else "DNS", "matcher": {"exact": name}}


def _is_name(address: Mapping[str, Any]) -> bool:
    if "socket_address" not in address:
        return False
    try:
        ipaddress.ip_address(address["socket_address"]["address"])
    except ValueError:
        return True
    return False
