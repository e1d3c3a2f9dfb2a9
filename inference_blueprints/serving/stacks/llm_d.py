"""llm-d: its router on the system nodes, stock vLLM servers on the pool's nodes.

The router is llm-d Router 0.11 as in its chart ``llm-d-router-standalone``: for each request, Envoy calls an
endpoint picker in the same pod. The filter of requests is in front of Envoy, in the same pod too: Envoy's
image has no Python. Flags are those of ``pkg/epp/server/options.go`` and
``pkg/sidecar/proxy/options.go`` of llm-d/llm-d-router, and of ``vllm serve``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines.kv_cache import kv_transfer, publisher_settings
from inference_blueprints.serving.engines.serving_engine import ParserFlags, RequestCounter
from inference_blueprints.serving.engines.vllm import VLLM_SERVER, serve_arguments
from inference_blueprints.serving.engines.worker_sizing import engine_of, worker_sizing
from inference_blueprints.serving.estimates.node_copies import node_cache, streams_weights
from inference_blueprints.serving.estimates.request_estimates import longest_stream_seconds
from inference_blueprints.serving.nodes.node_share import tolerations
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import (
    DEREGISTRATION_SECONDS,
    ENTRY_POINT_RESOURCES,
    EXIT_SECONDS,
    ROLES,
    capabilities,
    engine_image,
    engine_settings,
    network_environment,
    probes,
    rollout,
    startup_seconds,
    user_environment,
    worker_resources,
)
from inference_blueprints.serving.stacks.request_filter import add_filter, arguments_in_front_of
from inference_blueprints.serving.stacks.serving_stack import ServingStack, trace_arguments, trace_environment
from inference_blueprints.serving.types import (
    ApproximatePicker,
    EndpointPicker,
    EnvironmentValue,
    OwnAddress,
    Port,
    PrecisePicker,
    Process,
    Resources,
    Rollout,
    Sidecar,
)
from inference_blueprints.serving.weights_loading import mirror_release
from inference_blueprints.spec.types import LlmDStack, PrefixScorer
from inference_catalog.catalogue import shipped
from inference_catalog.ecs_images import ecs_image
from inference_catalog.node_facts import SYSTEM_ARCHITECTURE
from inference_contracts.request_filter import ALLOWED_VARIABLE

_HTTP = Port("http", 8000)
#: vLLM's port behind the sidecar, which listens on the InferencePool's port.
_BEHIND_SIDECAR = Port("vllm", 8200)
_SIDE_CHANNEL = Port("nixl", 5600)
_KV_EVENTS = Port("kv-events", 5557)
# vLLM's default port through which the nodes of a worker find each other.
_MASTER_PORT = 29501
#: Envoy's port behind the filter, at the loopback address.
_PROXY = Port("envoy", 8001)
_PICKER = Port("ext-proc", 9002)
_PICKER_HEALTH = Port("grpc-health", 9003)
_PICKER_METRICS = Port("metrics", 9090)
# With the approximate scorer a router uses only its own requests, so with two routers each would see only
# half of them. With the precise scorer each router receives all events of the workers.
_ROUTER_REPLICAS: Mapping[str, int] = MappingProxyType({"approximate": 1, "precise": 2})
# Time until the router detects that a worker is stopping.
_UNLISTED_SECONDS = 5


class LlmD(ServingStack):
    """llm-d."""

    frameworks = MappingProxyType({"vllm": "vllm"})
    chart = "llm-d-model"
    runs_own_servers = True

    def request_counter(self, engine: str) -> RequestCounter:  # noqa: ARG002 -- it runs one
        return VLLM_SERVER.requests

    def parser_flags(self, engine: str) -> ParserFlags | None:  # noqa: ARG002 -- it runs one
        return VLLM_SERVER.parsers

    def service_account(self, release: str) -> str:
        """Return the service account of the workers, which the chart creates."""
        return f"{release}-vllm"

    def picker(self, roles: tuple[ResolvedWorkers, ...]) -> EndpointPicker:
        """Return the router settings for choosing workers."""
        scorer = _prefix_scorer(roles[0])
        block_size = worker_sizing(roles[0]).block_size
        if scorer == "approximate":
            return ApproximatePicker(scorer, block_size)
        return PrecisePicker(scorer, block_size, render_process=ROLES[roles[0].role])

    def entry_point(self, resolved: ResolvedWorkers) -> Process:
        """Return the filter of requests, with Envoy and the endpoint picker as sidecars."""
        # The filter and Envoy drop their connections at SIGTERM, so they wait for the longest stream first.
        before_end = DEREGISTRATION_SECONDS + _stream_seconds(resolved)
        env = resolved.model.engine.section.env
        router = Process(
            name="router",
            role="frontend",
            image=ecs_image("python"),
            command=(),
            arguments=arguments_in_front_of(_HTTP.number, _PROXY.number),
            environment={name: env[name] for name in (ALLOWED_VARIABLE,) if name in env},
            ports=(_HTTP,),
            probes=probes(_HTTP, startup_path="/health", live_path="/health", startup_seconds=300),
            resources=ENTRY_POINT_RESOURCES,
            architecture=SYSTEM_ARCHITECTURE,
            tolerations=(),
            replicas=_ROUTER_REPLICAS[_prefix_scorer(resolved)],
            rollout=Rollout(max_surge=1, max_unavailable=1),
            pre_stop_seconds=before_end,
            termination_grace_seconds=before_end + EXIT_SECONDS,
            sidecars=(_endpoint_picker(), _proxy()),
        )
        # Neither Envoy nor the picker tells which worker has a request, so no request is suspected.
        return add_filter(
            router,
            resolved.model.engine.chosen,
            host_option="--host",
            port_option="--port",
            discovery="none",
        )

    def workers(self, resolved: ResolvedWorkers) -> Process:
        sizing = worker_sizing(resolved)
        stream = _stream_seconds(resolved)
        sidecars = (_disaggregation_sidecar(),) if resolved.role == "decode" else ()
        port = _BEHIND_SIDECAR if sidecars else _HTTP
        role = ROLES[resolved.role]
        arguments = {**self.arguments(resolved, sizing), **trace_arguments(resolved)}
        serve = _serve_arguments(resolved, arguments, port)
        return Process(
            name=role,
            role=role,
            image=engine_image(resolved),
            command=VLLM_SERVER.command,
            arguments=(*serve, *command_line(_place_of(resolved, leads=True))),
            follower_arguments=(*serve, *command_line(_place_of(resolved, leads=False)))
            if resolved.nodes > 1
            else (),
            environment=_environment(resolved),
            ports=_ports(resolved, port),
            probes=probes(
                port, startup_path="/health", live_path="/health", startup_seconds=startup_seconds(resolved)
            ),
            resources=_beside(worker_resources(resolved), sidecars),
            architecture=resolved.types[0].architecture,
            pool=resolved.pool.name,
            replicas=resolved.workers.minimum,
            rollout=rollout(resolved),
            pre_stop_seconds=_UNLISTED_SECONDS,
            termination_grace_seconds=_UNLISTED_SECONDS + stream + EXIT_SECONDS,
            engine=engine_settings(resolved, sizing),
            capabilities=capabilities(resolved),
            awaits_weights=mirror_release(resolved.model) if streams_weights(resolved) else None,
            node_cache=node_cache(resolved, engine_image(resolved)),
            tolerations=tolerations(resolved),
            sidecars=sidecars,
            nodes=resolved.nodes,
        )


def _prefix_scorer(resolved: ResolvedWorkers) -> PrefixScorer:
    """Return the scorer with which the model's router tracks cached prefixes."""
    section = resolved.model.stack.llm_d
    return section.prefix_scorer if section else LlmDStack().prefix_scorer


def _endpoint_picker() -> Sidecar:
    """Return the endpoint picker. The target adds the selection of workers."""
    return Sidecar(
        name="picker",
        image=_image("llmDEndpointPicker"),
        arguments=(
            "--config-file=/etc/picker/picker.yaml",
            f"--grpc-port={_PICKER.number}",
            f"--grpc-health-port={_PICKER_HEALTH.number}",
            f"--metrics-port={_PICKER_METRICS.number}",
            # Without authentication, like the engines' metrics. Authentication would need cluster-wide
            # permissions.
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


def _proxy() -> Sidecar:
    """Return Envoy, which is the program of its image (``distribution/docker/Dockerfile-envoy``)."""
    return Sidecar(
        name="envoy",
        image=_image("envoy"),
        arguments=(
            "--config-path",
            "/etc/envoy/envoy.yaml",
            "--log-level",
            "warn",
            "--disable-hot-restart",
        ),
        ports=(_PROXY,),
        cpu=1,
        memory_mib=1024,
        address="127.0.0.1",
    )


def _disaggregation_sidecar() -> Sidecar:
    """Return the proxy that sends a prompt to a prefill worker before its decode worker receives it."""
    return Sidecar(
        name="disaggregation",
        image=_image("llmDDisaggregationSidecar"),
        arguments=(f"--port={_HTTP.number}", "--kv-connector=nixlv2", "--secure-proxy=false"),
        ports=(_HTTP,),
        cpu=1,
        memory_mib=1024,
    )


def _serve_arguments(
    resolved: ResolvedWorkers, planned: Mapping[str, Argument], port: Port
) -> tuple[str, ...]:
    """Return the command line of ``vllm serve``, converted from the arguments of Dynamo's worker."""
    model, arguments = serve_arguments(planned, port.number, _stream_seconds(resolved))
    if _prefix_scorer(resolved) == "precise":
        arguments["kv-events-config"] = _kv_events(resolved)
        if resolved.role != "decode":
            # The router sends prompts there for tokenization, which vLLM 0.31 offers only with this switch.
            arguments["enable-scale-out"] = True
    return (model, *command_line(arguments))


def _place_of(resolved: ResolvedWorkers, *, leads: bool) -> Mapping[str, Argument]:
    """Return a node's place among those of its worker: the first serves the API, the others are headless.

    LeaderWorkerSet sets the leader's address and the pod's index in each pod.
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
    """Return the settings of a worker's cache events. Their topic contains the worker and the model."""
    name = f"kv@$(POD_IP):{_HTTP.number}@{resolved.model.name}"
    return json.dumps(publisher_settings(name, _KV_EVENTS.number), separators=(",", ":"))


def _environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    environment = {**user_environment(resolved), **engine_of(resolved).environment(resolved)}
    if _prefix_scorer(resolved) == "precise":
        environment["POD_IP"] = OwnAddress()
    transfer = kv_transfer(resolved)
    if transfer:
        # The other role requests blocks here; the default address is reachable only within the pod.
        environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] = OwnAddress()
        environment["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(_SIDE_CHANNEL.number)
    return {
        **environment,
        **network_environment(resolved),
        **trace_environment(resolved, ROLES[resolved.role]),
        **resolved.model.engine.section.env,
    }


def _ports(resolved: ResolvedWorkers, http: Port) -> tuple[Port, ...]:
    """Return the ports on which a worker listens, with the API's port first."""
    events = (_KV_EVENTS,) if _prefix_scorer(resolved) == "precise" else ()
    return (http, *((_SIDE_CHANNEL,) if kv_transfer(resolved) else ()), *events)


def _beside(whole: Resources, sidecars: tuple[Sidecar, ...]) -> Resources:
    """Return a worker's share of its node minus that of its sidecars."""
    cpu = whole.cpu - sum(each.cpu for each in sidecars)
    memory_mib = whole.memory_mib - sum(each.memory_mib for each in sidecars)
    return dataclasses.replace(whole, cpu=max(1, cpu), memory_mib=memory_mib)


def _image(name: str) -> str:
    """Return the address of an image that is not an engine's."""
    return shipped().component_images[name].address


def _stream_seconds(resolved: ResolvedWorkers) -> int:
    """Return the maximum duration of a stream, in seconds."""
    return longest_stream_seconds(resolved.traffic.means, resolved.model.objectives)
