"""The configuration of the Envoy before an entry point, which admits only known callers.

There is no administration listener: it would tell, and change, everything for whoever reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import CertificateFiles, Document, Peer
from inference_blueprints.serving.types.callers import AdmittedCallers
from inference_contracts.door_identities import (
    BEHIND_PORT,
    CALLERS_PORT,
    FOLDER,
    OLD_NAMES_RULE,
    PATHS,
    caller_uri,
)

_LOOPBACK: Final = "127.0.0.1"
_ANY: Final = "0.0.0.0"  # noqa: S104 -- in its own pod or task
#: Largest part of a body or an answer that waits in memory for its reader, in bytes. Streams pass at once.
_BUFFER_BYTES: Final = 1024 * 1024
_HANDSHAKE_SECONDS: Final = 10
_HEAD_SECONDS: Final = 30
_HEALTH_SECONDS: Final = 10
#: Connections of callers. Without a limit, Envoy warns at each start.
_MOST_CONNECTIONS: Final = 50_000
_PROGRAM: Final = "program"
_NOT_HERE: Final = '{"error":{"message":"nothing answers here","type":"not_found_error","code":"not_found"}}'


def caller_configuration(
    admitted: AdmittedCallers, *, folder: str = FOLDER, address: str = _ANY, program_port: int = BEHIND_PORT
) -> Document:
    """Return Envoy's bootstrap.

    folder: Folder with the certificate of the deployment.
    address: Address at which it listens.
    program_port: Port of the program at the loopback address.
    """
    own = CertificateFiles(folder)
    uris = tuple(caller_uri(admitted.platform, each) for each in admitted.callers)
    tls = parts.downstream_tls(own, Peer(own, uris), protocols=("h2", "http/1.1"))
    tls["typed_config"] |= {
        # A resumed session would outlive the certificate that it began with.
        "disable_stateless_session_resumption": True,
        "disable_stateful_session_resumption": True,
    }
    listeners = [
        _listener("callers", address, CALLERS_PORT, _callers(admitted), tls),
        _listener("open", address, admitted.open_port, _open(admitted)),
    ]
    limits = {"overload.global_downstream_max_connections": _MOST_CONNECTIONS}
    return {
        "node": {"id": "callers", "cluster": admitted.platform},
        "static_resources": {
            "listeners": listeners,
            "clusters": [parts.cluster(_PROGRAM, [parts.socket(_LOOPBACK, program_port)])],
        },
        "layered_runtime": {"layers": [{"name": "limits", "static_layer": limits}]},
    }


def _listener(
    name: str, address: str, port: int, manager: Document, tls: Mapping[str, Any] | None = None
) -> Document:
    found = parts.listener(
        name,
        parts.socket(address, port),
        [
            parts.extension(
                "envoy.filters.network.http_connection_manager",
                "filters.network.http_connection_manager.v3.HttpConnectionManager",
                stat_prefix=name,
                # What keeps two readers from understanding one request differently.
                normalize_path=True,
                merge_slashes=True,
                path_with_escaped_slashes_action="REJECT_REQUEST",
                request_headers_timeout=f"{_HEAD_SECONDS}s",
                common_http_protocol_options={"headers_with_underscores_action": "REJECT_REQUEST"},
                **manager,
            )
        ],
        transport=tls,
        per_connection_buffer_limit_bytes=_BUFFER_BYTES,
    )
    if tls:
        found["filter_chains"][0]["transport_socket_connect_timeout"] = f"{_HANDSHAKE_SECONDS}s"
    return found


def _callers(admitted: AdmittedCallers) -> Document:
    return {
        "codec_type": "AUTO",
        "stream_idle_timeout": f"{admitted.silent_seconds}s",
        # The header with the caller's certificate is Envoy's own, whatever the caller sends.
        "forward_client_cert_details": "SANITIZE",
        "access_log": [_refusals()],
        "route_config": _routes([_to_program({"prefix": "/"})]),
        "http_filters": [_rules(_caller_policies(admitted)), _router()],
    }


def _caller_policies(admitted: AdmittedCallers) -> Iterator[tuple[str, Document]]:
    """Yield what each caller may do: its paths. `principal_name` is a URI of its certificate.

    https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/config/rbac/v3/rbac.proto
    """
    for caller in admitted.callers:
        name = {"exact": caller_uri(admitted.platform, caller)}
        policy: Document = {
            "principals": [{"authenticated": {"principal_name": name}}],
            "permissions": [_path(each) for each in PATHS[caller]],
        }
        yield caller, policy


def _path(path: str) -> Document:
    return {"url_path": {"path": {"prefix" if path.endswith("/") else "exact": path}}}


def _open(admitted: AdmittedCallers) -> Document:
    """Return what passes health checks on, and the API until the stated time, also if nobody deploys then."""
    is_get = {"name": ":method", "string_match": {"exact": "GET"}}
    checks = [
        _to_program({"path": path, "headers": [is_get]}, timeout=f"{_HEALTH_SECONDS}s")
        for path in admitted.health_paths
    ]
    return {
        "codec_type": "HTTP1",
        "stream_idle_timeout": f"{admitted.silent_seconds}s",
        "access_log": [_refusals()],
        "route_config": _routes([*checks, _to_program({"prefix": "/v1/"}), _nothing()]),
        "http_filters": [_rules(_open_policies(admitted)), _router()],
    }


def _open_policies(admitted: AdmittedCallers) -> Iterator[tuple[str, Document]]:
    """Yield what anybody may do at the open port: health checks always, and the API until a time."""
    anybody: Document = {"principals": [{"any": True}]}
    yield "health", {**anybody, "permissions": [_path(each) for each in admitted.health_paths]}
    if admitted.old_names_until:
        api, condition = [_path(each) for each in PATHS["door"]], _before(admitted.old_names_until)
        yield OLD_NAMES_RULE, {**anybody, "permissions": api, "condition": condition}


def _before(time: str) -> Document:
    """Return the expression ``request.time < timestamp(time)`` as the syntax tree that Envoy takes (CEL)."""
    names = iter(range(1, 10))

    def node(**content: Any) -> Document:
        return {"id": next(names), **content}

    now = node(select_expr={"operand": node(ident_expr={"name": "request"}), "field": "time"})
    limit = node(call_expr={"function": "timestamp", "args": [node(const_expr={"string_value": time})]})
    return node(call_expr={"function": "_<_", "args": [now, limit]})


def _rules(policies: Iterable[tuple[str, Document]]) -> Document:
    rules = {"action": "ALLOW", "policies": dict(policies)}
    return parts.extension("envoy.filters.http.rbac", "filters.http.rbac.v3.RBAC", rules=rules)


def _refusals() -> Document:
    """Return the log of those who were refused: who, what and from where, without bodies and queries."""
    refused = {"op": "EQ", "value": {"default_value": 403, "runtime_key": "refused.status"}}
    fields = {
        "event": "caller refused",
        "time": "%START_TIME%",
        "caller": "%DOWNSTREAM_PEER_URI_SAN%",
        "from": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
        "method": "%REQ(:METHOD)%",
        "path": "%PATH(NQ)%",
        "why": "%RESPONSE_CODE_DETAILS%",
    }
    log = parts.extension(
        "refused", "access_loggers.stream.v3.StdoutAccessLog", log_format={"json_format": fields}
    )
    return {**log, "filter": {"status_code_filter": {"comparison": refused}}}


def _routes(routes: Sequence[Document]) -> Document:
    return {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list(routes)}]}


def _to_program(match: Document, timeout: str = "0s") -> Document:
    """Return a route to the program. An answer takes as long as it takes; silence ends it.

    A connection that the program has just closed is not the caller's fault. Nothing of the request was sent
    then, so it is sent once more.
    """
    again = {"retry_on": "connect-failure,refused-stream,reset-before-request", "num_retries": 1}
    return {"match": match, "route": {"cluster": _PROGRAM, "timeout": timeout, "retry_policy": again}}


def _nothing() -> Document:
    answer = {"status": 404, "body": {"inline_string": _NOT_HERE}}
    return {"match": {"prefix": "/"}, "direct_response": answer}


def _router() -> Document:
    return parts.extension(
        "envoy.filters.http.router", "filters.http.router.v3.Router", suppress_envoy_headers=True
    )
