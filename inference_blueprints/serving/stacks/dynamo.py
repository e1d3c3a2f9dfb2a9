"""NVIDIA Dynamo: a frontend with its router on the system nodes, engine workers on the pool's.

Commands, flags and environment are those of the ai-dynamo release that the catalogue pins; ports and health
paths are also what its Kubernetes operator expects (``deploy/operator/internal/consts`` of ai-dynamo/dynamo).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.catalog.placement import SYSTEM_ARCHITECTURE
from inference_blueprints.serving.arguments import words
from inference_blueprints.serving.engines.sizing import engine_of, worker_sizing
from inference_blueprints.serving.kv_transfer import telemetry_ports
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
    EnvironmentValue,
    OwnAddress,
    Port,
    Process,
    Resources,
    Rollout,
)
from inference_blueprints.serving.weights import mirror_release
from inference_blueprints.serving.workload import longest_stream_seconds
from inference_blueprints.spec.types import ArgumentValue

#: Engines that Dynamo runs, by the blueprint's key: its own word for each, and the name of its module.
FRAMEWORKS: Mapping[str, str] = MappingProxyType(
    {"vllm": "vllm", "sglang": "sglang", "tensorrtLlm": "trtllm"}
)
CHART = "dynamo-model"
OWNED_ARGUMENTS: Mapping[str, str] = MappingProxyType({})
FOREIGN_FLAGS: tuple[str, ...] = ()

_FRONTEND_REPOSITORY = "nvcr.io/nvidia/ai-dynamo/dynamo-frontend"
_FRONTEND_REPLICAS = 2
_HTTP = Port("http", 8000)
_SYSTEM = Port("system", 9090)
_ROUTER_MODES: Mapping[str, Mapping[str, ArgumentValue]] = MappingProxyType(
    {
        # Two frontends each see half of the requests; they tell each other which workers are busy.
        "kvAware": {"router-mode": "kv", "router-replica-sync": True},
        "roundRobin": {"router-mode": "round-robin"},
    }
)
# Where nothing listens.
_CLOSED = "http://127.0.0.1:9"
# Addresses of pods, which are those of the VPC.
_POD_RANGES = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
# Times that a stream may move to another worker when its own dies.
_MIGRATION_LIMIT = 3
# Dynamo's default between unregistering a worker and stopping its endpoints; then the process itself ends.
_UNREGISTERED_SECONDS = 5


def service_account(release: str) -> str:
    """Return the service account that Dynamo's operator makes for the pods of a graph.

    Parameters
    ----------
    release
        Of the deployment.
    """
    return f"{release}-k8s-service-discovery"


def picker(roles: tuple[ResolvedWorkers, ...]) -> None:
    """Return None: Dynamo's frontend chooses workers itself.

    Parameters
    ----------
    roles
        Its workers.
    """


def processes(roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
    """Return the frontend and the workers of a deployment.

    Parameters
    ----------
    roles
        Its workers, aggregated or prefill and decode.
    """
    return (_frontend(roles[0]), *map(_workers, roles))


def _frontend(resolved: ResolvedWorkers) -> Process:
    """Describe the process that answers the OpenAI API and routes."""
    stream = longest_stream_seconds(resolved.model.workload, resolved.model.objectives)
    routing = _ROUTER_MODES[resolved.model.routing.chosen]
    arguments = {"http-port": _HTTP.number, **routing, "migration-limit": _MIGRATION_LIMIT}
    environment: dict[str, EnvironmentValue] = {
        "DYN_TCP_RPC_HOST": OwnAddress(),
        "DYN_TCP_RESPONSE_STREAM_HOST": OwnAddress(),
        "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(stream),
        **_fetches_from_workers_alone(resolved),
    }
    return Process(
        name="frontend",
        role="frontend",
        image=f"{_FRONTEND_REPOSITORY}:{resolved.engine.version}",
        command=("python3", "-m", "dynamo.frontend"),
        arguments=words(arguments),
        environment=environment,
        ports=(_HTTP,),
        probes=probes(_HTTP, startup_path="/live", live_path="/live", startup_seconds=300),
        resources=Resources(cpu=1, memory_mib=2048, ephemeral_storage_mib=1024),
        architecture=SYSTEM_ARCHITECTURE,
        pool=None,
        replicas=_FRONTEND_REPLICAS,
        rollout=Rollout(max_surge=1, max_unavailable=1),
        pre_stop_seconds=DEREGISTRATION_SECONDS,
        termination_grace_seconds=DEREGISTRATION_SECONDS + stream + EXIT_SECONDS,
    )


def _fetches_from_workers_alone(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return what keeps a frontend from fetching what requests name.

    Of every image it asks for the size, at any public host and whatever the engine may fetch
    (``fetch_image_dims`` in ``lib/llm/src/preprocessor.rs`` of ai-dynamo/dynamo; there is no switch). What
    workers say of their model comes over HTTP as well, from their addresses.
    """
    existing = resolved.blueprint.spec.network.existing
    ranges = (*_POD_RANGES, existing.vpc_cidr) if existing else _POD_RANGES
    return {"HTTP_PROXY": _CLOSED, "HTTPS_PROXY": _CLOSED, "NO_PROXY": ",".join(ranges)}


def _workers(resolved: ResolvedWorkers) -> Process:
    """Describe the process that runs the engine in one role."""
    key = resolved.model.engine.chosen
    engine = engine_of(resolved)
    sizing = worker_sizing(resolved)
    stream = longest_stream_seconds(resolved.model.workload, resolved.model.objectives)
    environment: dict[str, EnvironmentValue] = {
        "DYN_SYSTEM_PORT": str(_SYSTEM.number),
        "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]',
        "DYN_TCP_RPC_HOST": OwnAddress(),
        "DYN_TCP_RESPONSE_STREAM_HOST": OwnAddress(),
        "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS": str(_UNREGISTERED_SECONDS),
        "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(stream),
        **engine.environment(resolved),
        **network_environment(resolved),
    }
    role = ROLES[resolved.role]
    return Process(
        name=role,
        role=role,
        image=engine_image(resolved),
        command=("python3", "-m", f"dynamo.{FRAMEWORKS[key]}"),
        arguments=words(engine.arguments(resolved, sizing)),
        environment=environment,
        ports=(_SYSTEM, *telemetry_ports(environment)),
        probes=probes(
            _SYSTEM, startup_path="/health", live_path="/live", startup_seconds=startup_seconds(resolved)
        ),
        resources=worker_resources(resolved),
        architecture=resolved.instance_types[0].architecture,
        pool=resolved.pool.name,
        replicas=resolved.workers.replicas,
        rollout=rollout(resolved),
        termination_grace_seconds=_UNREGISTERED_SECONDS + stream + EXIT_SECONDS,
        engine=engine_settings(resolved, sizing),
        capabilities=capabilities(resolved),
        awaits_weights=mirror_release(resolved.model),
        tolerations=tolerations(resolved),
        nodes=resolved.nodes,
    )
