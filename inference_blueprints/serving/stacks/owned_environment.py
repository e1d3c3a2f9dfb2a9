"""Environment variables that a blueprint must not set, each with the reason.

What the plan, Dynamo's operator ("Operator Default Values Injection" in its documentation), LeaderWorkerSet,
the charts and EKS set themselves; options of Dynamo that the plan passes as arguments; and switches that open
what the platform keeps closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_catalog import argument_reasons
from inference_contracts.request_filter import PROGRAM_VARIABLE, SETTINGS_VARIABLE

_CONNECTIONS = "the plan and Dynamo's operator connect the processes"
_KERNELS = "workers of a node may share the folder; see 'disk.nodeCacheGib' of the pool"
_COMPILED = "the plan counts NeuronCores and keeps compiled artefacts by it"
_STREAMS = "it follows from the longest answer of 'workload' and 'objectives'"
_ROUTER = "set 'routing' of the model"
_PARSERS = "set 'parsers' of the model"
_HEALTH = "health checks and metrics depend on it"
_TRANSPORT = "it follows from the pool's 'efa' and the deployment's topology"
_MEDIA = "set 'media' of the model; otherwise requests could name hosts to fetch from"
_FILES = "the image and the chart set it"
_IDENTITY = "pods have the identity of their deployment and need no keys"
_WEIGHTS = "set 'weights' of the model"
_OPERATOR_ENDPOINTS = "it opens endpoints for operators to every caller"
_PICKLE = "it lets whoever reaches a worker run code in it"
_TRACES = "set 'observability.traces'"
_FILTER = "the plan decides what the filter of requests checks; set 'REQUEST_FILTER_ALLOWED' to pass more on"
_NO_WAY_OUT = "frontends fetch nothing that a request names, so the plan closes their way out"

#: Variables of any process.
OWNED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "DYN_COMPONENT",
                "DYN_DISCOVERY_BACKEND",
                "DYN_ENDPOINT",
                "DYN_EVENT_PLANE",
                "DYN_NAMESPACE",
                "DYN_NAMESPACE_PREFIX",
                "DYN_NAMESPACE_WORKER_SUFFIX",
                "DYN_REQUEST_PLANE",
                "DYN_RESPONSE_PLANE",
                "DYN_TCP_RESPONSE_STREAM_HOST",
                "DYN_TCP_RPC_HOST",
                "DYNAMO_PORT",
                "ETCD_ENDPOINTS",
                "NATS_SERVER",
                "POD_IP",
                "POD_NAME",
                "POD_NAMESPACE",
                "POD_UID",
                "VLLM_HOST_IP",
                "VLLM_NIXL_SIDE_CHANNEL_HOST",
                "VLLM_NIXL_SIDE_CHANNEL_PORT",
                "VLLM_PORT",
            ),
            _CONNECTIONS,
        ),
        **dict.fromkeys((PROGRAM_VARIABLE, SETTINGS_VARIABLE), _FILTER),
        **dict.fromkeys(
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "OTEL_EXPORT_ENABLED",
                "OTEL_TRACES_SAMPLER",
                "OTEL_TRACES_SAMPLER_ARG",
                "OTEL_TRACES_SAMPLE_RATIO",
            ),
            _TRACES,
        ),
        **dict.fromkeys(
            (
                "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS",
                "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS",
                "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS",
            ),
            _STREAMS,
        ),
        **dict.fromkeys(
            (
                "DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD",
                "DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD",
                "DYN_MIGRATION_LIMIT",
                "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT",
                "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT_DECAY",
                "DYN_ROUTER_MODE",
                "DYN_ROUTER_POLICY_CONFIG",
                "DYN_ROUTER_PREFILL_LOAD_SCALE",
                "DYN_ROUTER_REPLICA_SYNC",
                "DYN_ROUTER_SESSION_AFFINITY_TTL_SECS",
                "DYN_ROUTER_TEMPERATURE",
            ),
            _ROUTER,
        ),
        **dict.fromkeys(("DYN_REASONING_PARSER", "DYN_TOOL_CALL_PARSER"), _PARSERS),
        **dict.fromkeys(
            ("DYN_HTTP_HOST", "DYN_HTTP_PORT", "DYN_METRICS_PREFIX", "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS"),
            _HEALTH,
        ),
        **dict.fromkeys(("DYN_VLLM_DISAGGREGATION_MODE",), argument_reasons()["topology"]),
        **dict.fromkeys(("SGLANG_DISAGGREGATION_NIXL_BACKEND", "TRTLLM_NIXL_KVCACHE_BACKEND"), _TRANSPORT),
        **dict.fromkeys(("DYN_MM_ALLOW_INTERNAL", "VLLM_MEDIA_URL_ALLOW_REDIRECTS"), _MEDIA),
        "DYN_TRUST_REMOTE_CODE": argument_reasons()["remoteCode"],
        **dict.fromkeys(
            (
                "NEURON_COMPILED_ARTIFACTS",
                "NEURON_LOGICAL_NC_CONFIG",
                "NEURON_RT_NUM_CORES",
                "NEURON_RT_VISIBLE_CORES",
                "NEURON_VISIBLE_DEVICES",
            ),
            _COMPILED,
        ),
        **dict.fromkeys(("HF_ENDPOINT", "HF_HOME", "MODEL_EXPRESS_URL"), _WEIGHTS),
        **dict.fromkeys(
            (
                "CUDA_CACHE_PATH",
                "FLASHINFER_WORKSPACE_BASE",
                "SGLANG_CACHE_DIR",
                "SGLANG_DG_CACHE_DIR",
                "TORCHINDUCTOR_CACHE_DIR",
                "TRITON_CACHE_DIR",
                "TRTLLM_DG_CACHE_DIR",
                "VLLM_CACHE_ROOT",
            ),
            _KERNELS,
        ),
        **dict.fromkeys(
            ("HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONPATH", "USER", "XDG_CACHE_HOME"), _FILES
        ),
        **dict.fromkeys(("VLLM_SERVER_DEV_MODE", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"), _OPERATOR_ENDPOINTS),
        "VLLM_ALLOW_INSECURE_SERIALIZATION": _PICKLE,
    }
)
#: Beginnings of names of any process.
OWNED_PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "AWS_": _IDENTITY,
        "DYN_PARENT_DGD_": _CONNECTIONS,
        "DYN_SYSTEM_": _HEALTH,
        "FI_": _TRANSPORT,
        "GROVE_": _CONNECTIONS,
        "KUBERNETES_": _CONNECTIONS,
        "KV_CACHE_": "set 'kvCache' of the model",
        "LWS_": _CONNECTIONS,
        "NIXL_TELEMETRY_": _HEALTH,
        "WEIGHTS_": _WEIGHTS,
    }
)
#: Variables of frontends.
OWNED_BY_FRONTENDS: Mapping[str, str] = MappingProxyType(
    {
        name: _NO_WAY_OUT
        for upper in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
        for name in (upper, upper.lower())
    }
)


def owner_reason(name: str, *, frontend: bool) -> str | None:
    """Return why a blueprint must not set a variable; None if it may."""
    if frontend and name in OWNED_BY_FRONTENDS:
        return OWNED_BY_FRONTENDS[name]
    if name in OWNED:
        return OWNED[name]
    return next((reason for prefix, reason in OWNED_PREFIXES.items() if name.startswith(prefix)), None)
