"""Envoy AI Gateway: its external processor beside an Envoy with the filters that its controller writes.

The filters, their order and their modes are those of `internal/extensionserver/post_translate_modify.go`
and of `tests/data-plane/envoy.yaml` in version 1.0.0 of github.com/envoyproxy/ai-gateway. Callers have an
API key, as with `SecurityPolicy`. Tokens and their cost are counted, and each request is logged. With
limits, the service of github.com/envoyproxy/ratelimit is asked before a request, and told its cost after
it, as with `BackendTrafficPolicy` (site/docs/capabilities/traffic/usage-based-ratelimiting.md there): a
day and a month, of the team and of the key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.front_door import Started
from benchmarks.harness.measured_door import MeasuredWay
from benchmarks.harness.peers.installed import installing, report, until_it_answers
from inference_blueprints.render.envoy import parts
from inference_local.control_plane import build
from inference_local.control_plane.artefacts import Program
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.processes.free_ports import free_ports

PROCESSOR: Final = Program(
    "ai-gateway",
    "github.com/envoyproxy/ai-gateway",
    "v1.0.0",
    "github.com/envoyproxy/ai-gateway/cmd/extproc",
)
#: The commit that version 1.0.0 of the gateway requires.
LIMITS: Final = Program(
    "ratelimit",
    "github.com/envoyproxy/ratelimit",
    "v1.4.1-0.20260122083618-3fb702589d36",
    "github.com/envoyproxy/ratelimit/src/service_cmd",
)
#: What a program that is built from the module calls its version, and takes configurations of.
_VERSION: Final = "dev"
_METADATA: Final = "io.envoy.ai_gateway"
_LOOPBACK: Final = "127.0.0.1"
_KEY: Final = "benchmark-key"
_KEY_HEADER, _MODEL_HEADER, _TEAM_HEADER = "authorization", "x-ai-eg-model", "x-team"
_COST: Final = "nano_dollars"
_RATE_LIMIT: Final = "envoy.filters.http.ratelimit"
#: Limits that are never reached, by their name and their period.
_LIMITS: Final = {
    f"{of} {period}": {"unit": period, "requests_per_unit": 4 * 10**9}
    for of in ("team", "key")
    for period in ("day", "month")
}
_Document = dict[str, Any]


def start(started: Started, *, limits: bool = False) -> MeasuredWay:
    """Start it.

    limits: Whether it keeps limits, in a Valkey of its own.
    Raises BenchmarkError if it cannot be installed, or does not start.
    """
    name = "ai-gateway-limits" if limits else "ai-gateway"
    folder = started.folder / name
    folder.mkdir()
    pids = [_processor(started, name, folder)]
    limited = _limits(started, folder) if limits else None
    port = _free_port()
    document = envoy_document(port, folder, started.model, limited[0] if limited else None)
    pids += [started.envoy(name, document), *(limited[1] if limited else ())]
    way = MeasuredWay(name, port, ((_KEY_HEADER, f"Bearer {_KEY}"),), tuple(pids))
    return until_it_answers(way, started.processes)


def access_log(started: Started) -> Path:
    """Return the log of its requests."""
    return started.folder / "ai-gateway" / "access.log"


def _processor(started: Started, name: str, folder: Path) -> int:
    with installing(f"Envoy AI Gateway {PROCESSOR.version}"):
        program = build.program(PROCESSOR, report) / PROCESSOR.name
    configuration = {
        "version": _VERSION,
        "uuid": "1",
        "globalLLMRequestCosts": [
            {"metadataKey": "in", "type": "InputToken"},
            {"metadataKey": "out", "type": "OutputToken"},
            {
                "metadataKey": _COST,
                "type": "CEL",
                "cel": "input_tokens * uint(200) + output_tokens * uint(800)",
            },
        ],
        "models": [{"Name": "m", "OwnedBy": "us"}],
        "backends": [{"name": "one", "schema": {"name": "OpenAI", "prefix": "v1"}}],
    }
    (folder / "configuration.yaml").write_text(json.dumps(configuration))
    process = started.processes.start(
        f"{name}-processor",
        [
            program,
            *("-configPath", folder / "configuration.yaml"),
            *("-extProcAddr", f"unix://{folder / 'processor.sock'}"),
            *("-adminPort", str(_free_port())),
        ],
        environment={"DISABLE_PPROF": "true"},
        log_path=folder / "processor.log",
        working_directory=folder,
    )
    pid: int = process.pid
    return pid


def _limits(started: Started, folder: Path) -> tuple[int, tuple[int, int]]:
    """Start the service of limits, and return its port and the processes of it and of its store."""
    with installing(f"{LIMITS.module} {LIMITS.version}"):
        program = build.program(LIMITS, report) / LIMITS.name
    store = started.entered(ValkeyServer(folder / "store"))
    rules = folder / "limits" / "config"
    rules.mkdir(parents=True)
    descriptors = [
        {"key": "limit", "value": each, "descriptors": [{"key": "of", "rate_limit": rate}]}
        for each, rate in _LIMITS.items()
    ]
    (rules / "rules.yaml").write_text(json.dumps({"domain": "tokens", "descriptors": descriptors}))
    port, http_port, debug_port = free_ports(3)
    process = started.processes.start(
        "ratelimit",
        [program],
        environment={
            "GRPC_HOST": _LOOPBACK,
            "GRPC_PORT": str(port),
            "HOST": _LOOPBACK,
            "PORT": str(http_port),
            "DEBUG_HOST": _LOOPBACK,
            "DEBUG_PORT": str(debug_port),
            "LOG_LEVEL": "warn",
            "REDIS_SOCKET_TYPE": "tcp",
            "REDIS_URL": f"{_LOOPBACK}:{store.port}",
            "RUNTIME_ROOT": str(folder),
            "RUNTIME_SUBDIRECTORY": "limits",
            "RUNTIME_WATCH_ROOT": "false",
            "DISABLE_STATS": "true",
            "USE_STATSD": "false",
        },
        log_path=folder / "ratelimit.log",
        working_directory=folder,
    )
    return port, (process.pid, store.pid)


def envoy_document(port: int, folder: Path, model: int, limits: int | None) -> _Document:
    """Return Envoy's configuration.

    model: Port of the model.
    limits: Port of the service of limits. None without limits.
    """
    manager = parts.extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="ai_gateway",
        generate_request_id=True,
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": _routes(limits)}]},
        http_filters=[
            _keys(),
            _external_processor(
                message_timeout="10s",
                processing_mode={
                    "request_header_mode": "SEND",
                    "request_body_mode": "BUFFERED",
                    "response_header_mode": "SEND",
                    "response_body_mode": "BUFFERED",
                },
            ),
            *([_rate_limit()] if limits else []),
            parts.extension("envoy.filters.http.router", "filters.http.router.v3.Router"),
        ],
        access_log=[_log(folder / "access.log")],
    )
    processor = parts.cluster("processor", [parts.pipe(str(folder / "processor.sock"))], http2=True)
    service = [parts.cluster("limits", [parts.socket(_LOOPBACK, limits)], http2=True)] if limits else []
    return {
        "static_resources": {
            "listeners": [parts.listener("door", parts.socket(_LOOPBACK, port), [manager])],
            "clusters": [_model(model), processor, *service],
        }
    }


def _routes(limits: int | None) -> list[_Document]:
    named = {"name": _MODEL_HEADER, "string_match": {"exact": "m"}}
    route: _Document = {
        "match": {"prefix": "/", "headers": [named]},
        "route": {"cluster": "one", "timeout": "0s"},
    }
    if limits:
        route["typed_per_filter_config"] = {_RATE_LIMIT: _checked_and_counted()}
    return [route, {"match": {"prefix": "/"}, "direct_response": {"status": 404}}]


def _checked_and_counted() -> _Document:
    """Return what is asked before a request, with nothing to add, and told after it."""
    actions = [
        [
            {"generic_key": {"descriptor_key": "limit", "descriptor_value": each}},
            {"request_headers": {"header_name": _TEAM_HEADER, "descriptor_key": "of"}},
        ]
        for each in _LIMITS
    ]
    spent = {"format": f"%DYNAMIC_METADATA({_METADATA}:{_COST})%"}
    before = [{"actions": each, "hits_addend": {"number": 0}} for each in actions]
    after = [{"actions": each, "hits_addend": spent, "apply_on_stream_done": True} for each in actions]
    return parts.typed("filters.http.ratelimit.v3.RateLimitPerRoute", rate_limits=[*before, *after])


def _keys() -> _Document:
    """Return the filter for API keys."""
    return parts.extension(
        "envoy.filters.http.api_key_auth",
        "filters.http.api_key_auth.v3.ApiKeyAuth",
        credentials=[{"key": _KEY, "client": "red"}],
        key_sources=[{"header": _KEY_HEADER}],
        forwarding={"header": _TEAM_HEADER},
    )


def _external_processor(**fields: Any) -> _Document:
    return parts.extension(
        "envoy.filters.http.ext_proc",
        "filters.http.ext_proc.v3.ExternalProcessor",
        allow_mode_override=True,
        grpc_service={"envoy_grpc": {"cluster_name": "processor"}, "timeout": "30s"},
        metadata_options={"receiving_namespaces": {"untyped": [_METADATA]}},
        **fields,
    )


def _rate_limit() -> _Document:
    return parts.extension(
        _RATE_LIMIT,
        "filters.http.ratelimit.v3.RateLimit",
        domain="tokens",
        failure_mode_deny=True,
        timeout="5s",
        rate_limit_service={
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": "limits"}},
        },
    )


def _log(file: Path) -> _Document:
    return parts.extension(
        "envoy.access_loggers.file",
        "access_loggers.file.v3.FileAccessLog",
        path=str(file),
        log_format={
            "json_format": {
                "id": "%REQ(x-request-id)%",
                "team": f"%REQ({_TEAM_HEADER})%",
                "model": f"%REQ({_MODEL_HEADER})%",
                "status": "%RESPONSE_CODE%",
                "flags": "%RESPONSE_FLAGS%",
                **{each: f"%DYNAMIC_METADATA({_METADATA}:{each})%" for each in ("in", "out", _COST)},
                "sent": "%BYTES_SENT%",
                "ms": "%DURATION%",
            }
        },
    )


def _model(port: int) -> _Document:
    """Return the cluster of the model: its filters write the body and the headers of this model."""
    found = parts.cluster("one", [parts.socket(_LOOPBACK, port)])
    backend = {"filter_metadata": {"aigateway.envoy.io": {"per_route_rule_backend_name": "one"}}}
    found["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["metadata"] = backend
    length = {"key": "content-length", "value": f"%DYNAMIC_METADATA({_METADATA}:content_length)%"}
    found["typed_extension_protocol_options"][parts.HTTP_OPTIONS]["http_filters"] = [
        _external_processor(
            message_timeout="10s",
            request_attributes=[
                "xds.upstream_host_metadata.filter_metadata"
                "['aigateway.envoy.io']['per_route_rule_backend_name']"
            ],
            processing_mode={
                "request_header_mode": "SEND",
                "request_body_mode": "NONE",
                "response_header_mode": "SKIP",
                "response_body_mode": "NONE",
            },
        ),
        parts.extension(
            "envoy.filters.http.header_mutation",
            "filters.http.header_mutation.v3.HeaderMutation",
            mutations={
                "request_mutations": [{"append": {"append_action": "ADD_IF_ABSENT", "header": length}}]
            },
        ),
        parts.extension("envoy.filters.http.upstream_codec", "filters.http.upstream_codec.v3.UpstreamCodec"),
    ]
    return found


def _free_port() -> int:
    [port] = free_ports(1)
    return port
