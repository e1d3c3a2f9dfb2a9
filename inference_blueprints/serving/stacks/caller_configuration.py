"""The configuration of the Envoy before an entry point, which admits only known callers.

All fields are those of Envoy's v3 API (https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/api). There is no
administration listener: it would tell, and change, everything to whoever reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from inference_contracts.door_identities import (
    BEHIND_PORT,
    ENVOY_AUTHORITY,
    ENVOY_CERTIFICATE,
    FILES,
    FOLDER,
    HEALTH_PORT,
    OLD_NAMES_PORT,
    PATHS,
    Caller,
    caller_uri,
)
from inference_contracts.records import dataclass

_EXTENSIONS: Final = "type.googleapis.com/envoy.extensions."
_ROUTER: Final = "envoy.filters.http.router"
_LOOPBACK: Final = "127.0.0.1"
_ANY: Final = "0.0.0.0"  # noqa: S104 -- in its own pod or task
#: Largest part of a body or an answer that waits in memory for its reader, in bytes. Streams pass at once.
_BUFFER_BYTES: Final = 1024 * 1024
#: Connections and requests to the program. Envoy's defaults of 1,024 would refuse streams that have room.
_MOST_REQUESTS: Final = 40_000
_HANDSHAKE_SECONDS: Final = 10
_HEAD_SECONDS: Final = 30
_HEALTH_SECONDS: Final = 10
_PROGRAM: Final = "program"
_NOT_HERE: Final = '{"error":{"message":"nothing answers here","type":"not_found_error","code":"not_found"}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedCallers:
    """What the configuration of an entry point depends on."""

    platform: str
    """`metadata.name`."""
    callers: tuple[Caller, ...]
    """Who may call it."""
    port: int
    """Port at which it takes their connections."""
    health_path: str
    """Path of its health check."""
    silent_seconds: int
    """Longest time in which an answer may bring nothing."""
    old_names_until: date | None = None
    """Day from which on nobody passes without a certificate. Until then, the load balancer reaches the API at
    a port of its own. None without that port."""


def caller_configuration(
    admitted: AdmittedCallers, *, folder: str = FOLDER, address: str = _ANY, program_port: int = BEHIND_PORT
) -> dict[str, Any]:
    """Return Envoy's bootstrap.

    folder: Folder with the certificate. Envoy reads its files again when an entry of the folder is replaced,
        so connections that exist stay as they are.
    address: Address at which it listens.
    program_port: Port of the program at the loopback address.
    """
    listeners = [
        _listener("callers", address, admitted.port, _callers(admitted), _admitted_tls(admitted, folder)),
        _listener("health", address, HEALTH_PORT, _health(admitted)),
    ]
    if admitted.old_names_until:
        listeners.append(
            _listener(
                "old-names",
                address,
                OLD_NAMES_PORT,
                _old_names(admitted, admitted.old_names_until),
            )
        )
    return {
        "node": {"id": "callers", "cluster": admitted.platform},
        "static_resources": {"listeners": listeners, "clusters": [_program(program_port)]},
        # The default drops the oldest connections above an unknown number of file descriptors.
        "layered_runtime": {
            "layers": [
                {"name": "limits", "static_layer": {"overload.global_downstream_max_connections": 50_000}}
            ]
        },
    }


def _listener(
    name: str,
    address: str,
    port: int,
    manager: Mapping[str, Any],
    tls: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    chain: dict[str, Any] = {
        "filters": [
            {
                "name": "envoy.filters.network.http_connection_manager",
                "typed_config": {
                    "@type": f"{_EXTENSIONS}filters.network.http_connection_manager.v3.HttpConnectionManager",
                    "stat_prefix": name,
                    **manager,
                },
            }
        ]
    }
    if tls:
        chain["transport_socket"] = tls
        chain["transport_socket_connect_timeout"] = f"{_HANDSHAKE_SECONDS}s"
    return {
        "name": name,
        "address": {"socket_address": {"address": address, "port_value": port}},
        "per_connection_buffer_limit_bytes": _BUFFER_BYTES,
        "filter_chains": [chain],
    }


def _admitted_tls(admitted: AdmittedCallers, folder: str) -> dict[str, Any]:
    """Return TLS that ends the handshake of everybody who is not a caller of this entry point.

    A certificate counts if a trusted authority signed it and one of its URIs is exactly that of a caller.
    """
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": f"{_EXTENSIONS}transport_sockets.tls.v3.DownstreamTlsContext",
            "require_client_certificate": True,
            # A resumed session would outlive the certificate that it began with.
            "disable_stateless_session_resumption": True,
            "disable_stateful_session_resumption": True,
            "common_tls_context": {
                "tls_params": {"tls_minimum_protocol_version": "TLSv1_3"},
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_certificate_sds_secret_configs": [
                    secret(ENVOY_CERTIFICATE, "envoy_certificate", folder)
                ],
                "combined_validation_context": {
                    "default_validation_context": {
                        "match_typed_subject_alt_names": [
                            {"san_type": "URI", "matcher": {"exact": caller_uri(admitted.platform, each)}}
                            for each in admitted.callers
                        ]
                    },
                    "validation_context_sds_secret_config": secret(
                        ENVOY_AUTHORITY, "envoy_authority", folder
                    ),
                },
            },
        },
    }


def secret(name: str, value: str, folder: str = FOLDER) -> dict[str, Any]:
    """Return where Envoy reads a part of its certificate, and again when the folder changes.

    https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/security/secret#sds-configuration

    name: Name of the secret in the file.
    value: Key of `FILES`.
    folder: Folder with the files.
    """
    return {
        "name": name,
        "sds_config": {
            "resource_api_version": "V3",
            "path_config_source": {
                "path": f"{folder}/{FILES[value]}",
                "watched_directory": {"path": folder},
            },
        },
    }


def _callers(admitted: AdmittedCallers) -> dict[str, Any]:
    return {
        **_strict(),
        "codec_type": "AUTO",
        "stream_idle_timeout": f"{admitted.silent_seconds}s",
        # The header with the caller's certificate is Envoy's own, whatever the caller sends.
        "forward_client_cert_details": "SANITIZE",
        "access_log": [_refusals()],
        "route_config": _routes([_to_program({"prefix": "/"})]),
        "http_filters": [_rules(_caller_policies(admitted)), _router()],
    }


def _caller_policies(admitted: AdmittedCallers) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each caller may do: its paths. `principal_name` is the first URI of its certificate."""
    for caller in admitted.callers:
        name = {"exact": caller_uri(admitted.platform, caller)}
        yield (
            caller,
            {
                "principals": [{"authenticated": {"principal_name": name}}],
                "permissions": [_path(each) for each in PATHS[caller]],
            },
        )


def _path(path: str) -> dict[str, Any]:
    return {"url_path": {"path": {"prefix" if path.endswith("/") else "exact": path}}}


def _health(admitted: AdmittedCallers) -> dict[str, Any]:
    """Return what only passes health checks on. Everything else has an answer of its own."""
    check = {"path": admitted.health_path, "headers": [_method("GET")]}
    return {
        **_strict(),
        "codec_type": "HTTP1",
        "stream_idle_timeout": f"{_HEALTH_SECONDS}s",
        "route_config": _routes(
            [_to_program(check, timeout=f"{_HEALTH_SECONDS}s"), _nothing()],
        ),
        "http_filters": [_router()],
    }


def _old_names(admitted: AdmittedCallers, until: date) -> dict[str, Any]:
    """Return what passes the API on without a certificate until a day, also if nobody deploys then."""
    day = f"{until.isoformat()}T00:00:00Z"
    allowed = {
        "principals": [{"any": True}],
        "permissions": [_path(each) for each in PATHS["door"]],
        "condition": _before(day),
    }
    return {
        **_strict(),
        "codec_type": "HTTP1",
        "stream_idle_timeout": f"{admitted.silent_seconds}s",
        "access_log": [_refusals()],
        "route_config": _routes([_to_program({"prefix": "/v1/"}), _nothing()]),
        "http_filters": [_rules([("old-names", allowed)]), _router()],
    }


def _before(day: str) -> dict[str, Any]:
    """Return the expression ``request.time < timestamp(day)`` as the syntax tree that Envoy takes (CEL)."""
    names = iter(range(1, 10))

    def node(**content: Any) -> dict[str, Any]:
        return {"id": next(names), **content}

    time = node(select_expr={"operand": node(ident_expr={"name": "request"}), "field": "time"})
    limit = node(
        call_expr={"function": "timestamp", "args": [node(const_expr={"string_value": day})]},
    )
    return node(call_expr={"function": "_<_", "args": [time, limit]})


def _strict() -> dict[str, Any]:
    """Return what keeps two readers from understanding one request differently."""
    return {
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        "request_headers_timeout": f"{_HEAD_SECONDS}s",
        "common_http_protocol_options": {"headers_with_underscores_action": "REJECT_REQUEST"},
    }


def _rules(policies: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    return {
        "name": "envoy.filters.http.rbac",
        "typed_config": {
            "@type": f"{_EXTENSIONS}filters.http.rbac.v3.RBAC",
            "rules": {"action": "ALLOW", "policies": dict(policies)},
        },
    }


def _refusals() -> dict[str, Any]:
    """Return the log of those who were refused: who, what and from where, without bodies and queries."""
    return {
        "name": "refused",
        "filter": {
            "status_code_filter": {
                "comparison": {"op": "EQ", "value": {"default_value": 403, "runtime_key": "refused.status"}}
            }
        },
        "typed_config": {
            "@type": f"{_EXTENSIONS}access_loggers.stream.v3.StdoutAccessLog",
            "log_format": {
                "json_format": {
                    "event": "caller refused",
                    "time": "%START_TIME%",
                    "caller": "%DOWNSTREAM_PEER_URI_SAN%",
                    "from": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
                    "method": "%REQ(:METHOD)%",
                    "path": "%PATH(NQ)%",
                    "why": "%RESPONSE_CODE_DETAILS%",
                }
            },
        },
    }


def _routes(routes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list(routes)}]}


def _to_program(match: Mapping[str, Any], timeout: str = "0s") -> dict[str, Any]:
    """Return a route to the program. An answer takes as long as it takes; silence ends it."""
    return {"match": dict(match), "route": {"cluster": _PROGRAM, "timeout": timeout}}


def _nothing() -> dict[str, Any]:
    return {
        "match": {"prefix": "/"},
        "direct_response": {"status": 404, "body": {"inline_string": _NOT_HERE}},
    }


def _method(name: str) -> dict[str, Any]:
    return {"name": ":method", "string_match": {"exact": name}}


def _router() -> dict[str, Any]:
    return {
        "name": _ROUTER,
        "typed_config": {
            "@type": f"{_EXTENSIONS}filters.http.router.v3.Router",
            "suppress_envoy_headers": True,
        },
    }


def _program(port: int) -> dict[str, Any]:
    limits = {"max_connections": _MOST_REQUESTS, "max_pending_requests": _MOST_REQUESTS}
    return {
        "name": _PROGRAM,
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [{**limits, "max_requests": _MOST_REQUESTS}]},
        "load_assignment": {
            "cluster_name": _PROGRAM,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _socket(port)}}]}],
        },
    }


def _socket(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": _LOOPBACK, "port_value": port}}
