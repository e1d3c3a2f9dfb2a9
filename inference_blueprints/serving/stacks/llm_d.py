"""llm-d: its router on the system nodes, stock vLLM servers on the pool's.

The router is llm-d Router 0.11 as its chart ``llm-d-router-standalone`` runs it: Envoy, which asks an
endpoint picker beside it for each request. Flags are those of ``pkg/epp/server/options.go`` and
``pkg/sidecar/proxy/options.go`` of llm-d/llm-d-router, and of ``vllm serve``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.catalog.placement import SYSTEM_ARCHITECTURE
from inference_blueprints.serving.arguments import Argument, words
from inference_blueprints.serving.engines.sizing import engine_of, worker_sizing
from inference_blueprints.serving.engines.vllm_connectors import RECOMPUTE
from inference_blueprints.serving.kv_transfer import kv_transfer
from inference_blueprints.serving.node_share import tolerations
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.rollout import rollout
from inference_blueprints.serving.stacks.worker import (
    DEREGISTRATION_SECONDS,
    EXIT_SECONDS,
    ROLES,
    capabilities,
    engine_image,
    engine_settings,
    network_environment,
    probes,
    startup_seconds,
    worker_resources,
)
from inference_blueprints.serving.types import (
    EndpointPicker,
    EnvironmentValue,
    OwnAddress,
    Port,
    Process,
    Resources,
    Rollout,
    Sidecar,
)
from inference_blueprints.serving.weights import mirror_release
from inference_blueprints.serving.workload import longest_stream_seconds
from inference_blueprints.spec.types import LlmDStack, PrefixScorer

#: Engines that llm-d runs, by the blueprint's key, and its own word for each.
FRAMEWORKS: Mapping[str, str] = MappingProxyType({"vllm": "vllm"})
CHART = "llm-d-model"

# Read by nobody: their digests are in no source that this library may quote.
_PICKER_IMAGE = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.11.0"
_DISAGGREGATION_IMAGE = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.11.0"
_ENVOY_IMAGE = "docker.io/envoyproxy/envoy:distroless-v1.39.3"
_HTTP = Port("http", 8000)
#: Where vLLM listens behind the sidecar, which has the pool's port.
_BEHIND_SIDECAR = Port("vllm", 8200)
_SIDE_CHANNEL = Port("nixl", 5600)
_KV_EVENTS = Port("kv-events", 5557)
# vLLM's default, where the nodes of a worker find each other.
_MASTER_PORT = 29501
_PICKER = Port("ext-proc", 9002)
_PICKER_HEALTH = Port("grpc-health", 9003)
_PICKER_METRICS = Port("metrics", 9090)
# One router knows where it has sent which prefix, and a second one would know of half; with the workers' own
# events each knows everything.
_ROUTER_REPLICAS: Mapping[str, int] = MappingProxyType({"approximate": 1, "precise": 2})
# The router stops choosing a worker as soon as it is told of its end, which takes a moment.
_UNLISTED_SECONDS = 5
#: Arguments of ``dynamo.vllm`` that ``vllm serve`` has no word for.
_DYNAMO_ONLY = ("disaggregation-mode",)
OWNED_ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {"shutdown-timeout": "it is as long as the workload's longest answer"}
)
#: Of the flags that the catalogue has of ``dynamo.vllm``, whose ``vllm serve`` does not know.
FOREIGN_FLAGS: tuple[str, ...] = ("dynamo",)


def service_account(release: str) -> str:
    """Return the service account of the workers.

    Parameters
    ----------
    release
        Of the deployment.
    """
    return f"{release}-vllm"


def picker(roles: tuple[ResolvedWorkers, ...]) -> EndpointPicker:
    """Return what the router chooses by.

    Parameters
    ----------
    roles
        Its workers, aggregated or prefill and decode.
    """
    scorer = _prefix_scorer(roles[0])
    return EndpointPicker(
        prefix_scorer=scorer,
        block_size=worker_sizing(roles[0]).block_size,
        render_process=ROLES[roles[0].role] if scorer == "precise" else None,
    )


def processes(roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
    """Return the router and the workers of a deployment.

    Parameters
    ----------
    roles
        Its workers, aggregated or prefill and decode.
    """
    return (_router(roles[0]), *map(_workers, roles))


def _prefix_scorer(resolved: ResolvedWorkers) -> PrefixScorer:
    """Return how the model's router knows what is cached."""
    section = resolved.model.stack.llm_d
    return section.prefix_scorer if section else LlmDStack().prefix_scorer


def _router(resolved: ResolvedWorkers) -> Process:
    """Describe the process that answers the OpenAI API, and the picker that it asks."""
    # Envoy drops its connections at SIGTERM, so the wait before it is as long as the longest stream.
    before_end = DEREGISTRATION_SECONDS + _stream_seconds(resolved)
    return Process(
        name="router",
        role="frontend",
        image=_ENVOY_IMAGE,
        command=("envoy",),
        arguments=("--config-path", "/etc/envoy/envoy.yaml", "--log-level", "warn", "--disable-hot-restart"),
        environment={},
        ports=(_HTTP,),
        probes=probes(_HTTP, startup_path="/health", live_path="/health", startup_seconds=300),
        resources=Resources(cpu=1, memory_mib=2048, ephemeral_storage_mib=1024),
        architecture=SYSTEM_ARCHITECTURE,
        pool=None,
        replicas=_ROUTER_REPLICAS[_prefix_scorer(resolved)],
        rollout=Rollout(max_surge=1, max_unavailable=1),
        pre_stop_seconds=before_end,
        termination_grace_seconds=before_end + EXIT_SECONDS,
        sidecars=(_endpoint_picker(),),
    )


def _endpoint_picker() -> Sidecar:
    """Describe what chooses workers; which they are is the target's business."""
    return Sidecar(
        name="picker",
        image=_PICKER_IMAGE,
        arguments=(
            "--config-file=/etc/picker/picker.yaml",
            f"--grpc-port={_PICKER.number}",
            f"--grpc-health-port={_PICKER_HEALTH.number}",
            f"--metrics-port={_PICKER_METRICS.number}",
            # As open as the engines' own; asking who may read takes rights in the whole cluster.
            "--metrics-endpoint-auth=false",
            "--enable-pprof=false",
            "--tracing=false",
            "--zap-encoder=json",
        ),
        ports=(_PICKER, _PICKER_HEALTH, _PICKER_METRICS),
        cpu=1,
        memory_mib=2048,
        health_port=_PICKER_HEALTH.name,
    )


def _disaggregation_sidecar() -> Sidecar:
    """Describe what has a prompt computed elsewhere before its decode worker sees it."""
    return Sidecar(
        name="disaggregation",
        image=_DISAGGREGATION_IMAGE,
        arguments=(f"--port={_HTTP.number}", "--kv-connector=nixlv2", "--secure-proxy=false"),
        ports=(_HTTP,),
        cpu=1,
        memory_mib=1024,
    )


def _workers(resolved: ResolvedWorkers) -> Process:
    """Describe the vLLM servers of one role."""
    engine = engine_of(resolved)
    sizing = worker_sizing(resolved)
    stream = _stream_seconds(resolved)
    sidecars = (_disaggregation_sidecar(),) if resolved.role == "decode" else ()
    port = _BEHIND_SIDECAR if sidecars else _HTTP
    role = ROLES[resolved.role]
    serve = _serve_arguments(resolved, engine.arguments(resolved, sizing), port)
    return Process(
        name=role,
        role=role,
        image=engine_image(resolved),
        command=("vllm", "serve"),
        arguments=(*serve, *words(_place_of(resolved, leads=True))),
        follower_arguments=(*serve, *words(_place_of(resolved, leads=False))) if resolved.nodes > 1 else (),
        environment=_environment(resolved),
        ports=_ports(resolved, port),
        probes=probes(
            port, startup_path="/health", live_path="/health", startup_seconds=startup_seconds(resolved)
        ),
        resources=_beside(worker_resources(resolved), sidecars),
        architecture=resolved.instance_types[0].architecture,
        pool=resolved.pool.name,
        replicas=resolved.workers.replicas,
        rollout=rollout(resolved),
        pre_stop_seconds=_UNLISTED_SECONDS,
        termination_grace_seconds=_UNLISTED_SECONDS + stream + EXIT_SECONDS,
        engine=engine_settings(resolved, sizing),
        capabilities=capabilities(resolved),
        awaits_weights=mirror_release(resolved.model),
        tolerations=tolerations(resolved),
        sidecars=sidecars,
        nodes=resolved.nodes,
    )


def _serve_arguments(
    resolved: ResolvedWorkers, planned: Mapping[str, Argument], port: Port
) -> tuple[str, ...]:
    """Return the command line of ``vllm serve``: that of Dynamo's worker in stock vLLM's words."""
    arguments = {name: value for name, value in planned.items() if name not in _DYNAMO_ONLY}
    model = str(arguments.pop("model"))
    arguments |= {"port": port.number, "shutdown-timeout": _stream_seconds(resolved)}
    # How much of a prompt was found in the cache, which Dynamo's workers always say.
    arguments["enable-prompt-tokens-details"] = True
    if "kv-transfer-config" in arguments:
        transfer = json.loads(str(arguments["kv-transfer-config"])) | dict(RECOMPUTE)
        arguments["kv-transfer-config"] = json.dumps(transfer, separators=(",", ":"))
    arguments.pop("kv-events-config", None)
    if _prefix_scorer(resolved) == "precise":
        arguments["kv-events-config"] = _kv_events(resolved)
        if resolved.role != "decode":
            # The router has prompts turned into tokens there, which vLLM 0.31 does only when it is told to.
            arguments["enable-scale-out"] = True
    return (model, *words(arguments))


def _place_of(resolved: ResolvedWorkers, *, leads: bool) -> Mapping[str, Argument]:
    """Return which of a worker's nodes vLLM runs on: the first has the API, the others follow without one.

    LeaderWorkerSet tells each of its pods where the first is, and how many come before it.
    """
    if resolved.nodes == 1:
        return {}
    place: dict[str, Argument] = {
        "distributed-executor-backend": "mp",
        "nnodes": resolved.nodes,
        "master-addr": "$(LWS_LEADER_ADDRESS)",
        "master-port": _MASTER_PORT,
    }
    rank: dict[str, Argument] = {"node-rank": "$(LWS_WORKER_INDEX)", "headless": True}
    return place | ({"node-rank": 0} if leads else rank)


def _kv_events(resolved: ResolvedWorkers) -> str:
    """Return where a worker says what it caches, by a topic that names worker and model."""
    settings = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": f"tcp://*:{_KV_EVENTS.number}",
        "topic": f"kv@$(POD_IP):{_HTTP.number}@{resolved.model.name}",
    }
    return json.dumps(settings, separators=(",", ":"))


def _environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return the environment of a worker."""
    environment = dict(engine_of(resolved).environment(resolved))
    if _prefix_scorer(resolved) == "precise":
        environment["POD_IP"] = OwnAddress()
    transfer = kv_transfer(resolved)
    if transfer:
        # Where the other role asks for blocks; by default only this very pod would find it.
        environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] = OwnAddress()
        environment["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(_SIDE_CHANNEL.number)
    return {**environment, **network_environment(resolved)}


def _ports(resolved: ResolvedWorkers, http: Port) -> tuple[Port, ...]:
    """Return the ports on which a worker listens, that of its API first."""
    events = (_KV_EVENTS,) if _prefix_scorer(resolved) == "precise" else ()
    return (http, *((_SIDE_CHANNEL,) if kv_transfer(resolved) else ()), *events)


def _beside(whole: Resources, sidecars: tuple[Sidecar, ...]) -> Resources:
    """Return what is left of a worker's share of its node beside its sidecars."""
    cpu = whole.cpu - sum(each.cpu for each in sidecars)
    memory_mib = whole.memory_mib - sum(each.memory_mib for each in sidecars)
    return dataclasses.replace(whole, cpu=max(1, cpu), memory_mib=memory_mib)


def _stream_seconds(resolved: ResolvedWorkers) -> int:
    """Return how long the longest answer may stream."""
    return longest_stream_seconds(resolved.model.workload, resolved.model.objectives)
