"""NVIDIA Dynamo: a frontend with its router on the system nodes, engine workers on the pool's nodes.

Commands, flags and environment are those of the ai-dynamo release that the catalogue pins; ports and health
paths are also what its Kubernetes operator expects (``deploy/operator/internal/consts`` of ai-dynamo/dynamo).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.kv_cache import NIXL_PORT_VARIABLE, telemetry_ports
from inference_blueprints.serving.engines.serving_engine import ParserFlags, RequestCounter
from inference_blueprints.serving.engines.worker_sizing import engine_of, worker_sizing
from inference_blueprints.serving.estimates.node_copies import node_cache, streams_weights
from inference_blueprints.serving.estimates.request_estimates import frontend_size, longest_stream_seconds
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
    worker_resources,
)
from inference_blueprints.serving.stacks.request_filter import add_filter
from inference_blueprints.serving.stacks.serving_stack import (
    ServingStack,
    engine_reasoning,
    trace_arguments,
    trace_environment,
    vocabulary_hosts,
)
from inference_blueprints.serving.types import (
    EnginePort,
    EnvironmentValue,
    FilePath,
    OwnAddress,
    Port,
    Process,
    Rollout,
)
from inference_blueprints.serving.weights_loading import mirror_release
from inference_blueprints.spec.types import ArgumentValue, Frontend, KvAwareRouting
from inference_catalog.node_facts import SYSTEM_ARCHITECTURE
from inference_contracts.request_headers import BATCH_CLASS, BATCH_HEADERS

# Levels of Dynamo's logs: one line per request instead of eight.
#
# At the level ``info``, a frontend of ai-dynamo 1.6.1 writes five or six lines per request, together 1.5 kB,
# and a worker two or three. CloudWatch Logs bills each gigabyte, and the metrics say the same. So the modules
# that write these lines log from ``warn`` on. One line of a frontend stays, which names the request, its
# worker and its outcome: Dynamo fixes the level of its spans, and this line has it. ``DYN_LOG`` holds levels
# by module (https://docs.nvidia.com/dynamo/dev/reference/observability/environment-variables).

#: Variable with the levels. A blueprint may set it.
LOG_LEVELS: Final = "DYN_LOG"
#: Modules that write a line per request.
_PER_REQUEST: Final = (
    "dynamo_llm::http::service",
    "dynamo_kv_router::scheduling::selector",
    "dynamo_runtime::pipeline::network::ingress::push_handler",
)
#: Variables of every process of Dynamo for its logs.
LOG_ENVIRONMENT: Final = {LOG_LEVELS: ",".join(("info", *(f"{module}=warn" for module in _PER_REQUEST)))}


# How Dynamo's router treats requests of batch beside interactive ones.
#
# Interactive requests never wait in the router. A request of batch waits until a worker has no prompt to
# process: it then delays no first token by more than its own prompt. The router weighs prompts in process
# much more than tokens being generated, and a cached prefix less on workers that have more prompts in
# process, so interactive requests go to the workers without prompts of batch.
#
# The file is that of ``--router-policy-config`` (``lib/kv-router/src/scheduling`` of ai-dynamo 1.6.1 and its
# page "Configuration and Tuning"): a request with a class of its own in ``x-dynamo-meta-policy-class`` waits
# in the queue of this class, all others belong to the default family.

_INTERACTIVE, _ALL = "interactive", "all"
#: Requests of batch that are admitted in a turn of their queue, in tokens. Interactive ones do not queue.
_QUANTUM = 2048
#: The frontend's arguments for choosing among workers.
BESIDE_BATCH: Mapping[str, float] = MappingProxyType(
    {
        # Weight of a prompt that is being processed, against tokens that are being generated. In Dynamo's
        # offline replay (simulated: four workers, one router), first tokens beside batch come earlier up to
        # 16 to 64, where they change no more.
        "router-prefill-load-scale": 32.0,
        # How fast a cached prefix loses its weight on workers with more prompts in process than others. A
        # free worker without the prefix answers sooner than one that has it but first processes a prompt of
        # batch.
        "router-kv-overlap-score-credit-decay": 2.0,
    }
)

_POLICY = {
    "default_policy_family": _INTERACTIVE,
    "uncached_isl_buckets": [{"bucket": _ALL, "min_tokens": 0}],
    "policy_classes": [
        {"name": _INTERACTIVE, "policy_family": _INTERACTIVE, "cache_bucket": _ALL, "quantum": _QUANTUM},
        {"name": BATCH_CLASS, "quantum": _QUANTUM, "prefill_busy_threshold": 0},
    ],
}


def router_policy() -> FilePath:
    """Return the file of the router's classes. JSON is YAML."""
    return FilePath("router-policy.yaml", json.dumps(_POLICY, indent=1) + "\n")


#: Argument of workers with the default of thinking, and the variable with the file of a chat template.
THINKING_ARGUMENT, TEMPLATE_VARIABLE = "dyn-default-thinking-mode", "DYN_CUSTOM_JINJA_TEMPLATE"
#: Arguments of Dynamo's workers that name parsers, with every engine.
DYNAMO_PARSERS = ParserFlags("dynamo", "dyn-reasoning-parser", "dyn-tool-call-parser")
_FRONTEND_REPOSITORY = "nvcr.io/nvidia/ai-dynamo/dynamo-frontend"
_HTTP = Port("http", 8000)
_SYSTEM = Port("system", 9090)
_ROUTER_MODES: Mapping[str, Mapping[str, ArgumentValue]] = MappingProxyType(
    {
        # Each frontend gets a part of the requests, so they exchange the load of workers.
        "kvAware": {"router-mode": "kv", "router-replica-sync": True},
        "roundRobin": {"router-mode": "round-robin"},
    }
)
# Folder of vocabularies, which are then not downloaded (public_encodings.rs of openai-harmony).
_VOCABULARIES = "TIKTOKEN_ENCODINGS_BASE"
# An address where nothing listens.
_CLOSED = "http://127.0.0.1:9"
# Address ranges of pods, which have addresses of the VPC.
_POD_RANGES = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
# Maximum number of times that a stream moves to another worker after its worker dies. A request that ends its
# worker ends another one each time: four in 89 ms with a limit of three (tried with Dynamo 1.6.1's frontend).
_MIGRATION_LIMIT = 1
# EC2 ends a spot instance two minutes after its notice.
_SPOT_SECONDS = 120
# Karpenter drains the nodes of a Capacity Block ten minutes before EC2 ends them
# (https://karpenter.sh/v1.14/tasks/odcrs/).
_CAPACITY_BLOCK_SECONDS = 600
# Time to hand over the requests that still run when the time for streams is over.
_MOVE_SECONDS = 5
# TensorRT-LLM's prefill workers then wait for their transfers of KV cache (``_DRAIN_TIMEOUT_S`` of
# ``trtllm/main.py``). The others hold their memory until then anyway.
_TRANSFER_SECONDS = 30


class Dynamo(ServingStack):
    """NVIDIA Dynamo."""

    frameworks: Mapping[str, str] = MappingProxyType(
        {name: engine.dynamo_name for name, engine in ENGINES.items() if engine.dynamo_name}
    )
    """Dynamo's name of each engine is also the name of its worker's Python module."""
    chart = "dynamo-model"
    address_options = ("--http-host", "--http-port")
    fetching_from_any_host = frozenset(
        name for name, engine in ENGINES.items() if engine.fetches_from_any_host
    )

    def request_counter(self, engine: str) -> RequestCounter:  # noqa: ARG002 -- the same for all
        """Return the counter of Dynamo's runtime.

        Workers of every engine and role answer at an endpoint of this name, and the runtime counts the
        requests of each endpoint (``dynamo/{vllm,sglang,trtllm}`` of ai-dynamo 1.6.1).
        """
        return RequestCounter("dynamo_component_requests_total", 'dynamo_endpoint="generate"')

    def parser_flags(self, engine: str) -> ParserFlags:  # noqa: ARG002 -- the same for all
        return DYNAMO_PARSERS

    def service_account(self, release: str) -> str:
        """Return the service account that Dynamo's operator creates for the pods of a graph."""
        return f"{release}-k8s-service-discovery"

    def batch_headers(self, resolved: ResolvedWorkers) -> Mapping[str, str]:
        return BATCH_HEADERS if resolved.shared_with_batch else {}

    def entry_point(self, resolved: ResolvedWorkers) -> Process:
        stream = longest_stream_seconds(resolved.traffic.means, resolved.model.objectives)
        routing, frontend = resolved.model.routing, resolved.model.frontend or Frontend()
        size = frontend_size(resolved.model, resolved.traffic)
        arguments = {
            "http-port": _HTTP.number,
            **_ROUTER_MODES[routing.chosen],
            **(_router_settings(routing.kv_aware) if routing.kv_aware else {}),
            **(BESIDE_BATCH if resolved.shared_with_batch else {}),
            "migration-limit": _MIGRATION_LIMIT,
        }
        environment: dict[str, EnvironmentValue] = {
            "DYN_TCP_RPC_HOST": OwnAddress(),
            "DYN_TCP_RESPONSE_STREAM_HOST": OwnAddress(),
            "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(stream),
            **_fetch_limits(resolved, self._vocabulary_hosts(resolved, frontend)),
            **LOG_ENVIRONMENT,
            **trace_environment(resolved, "frontend"),
            **({"DYN_ROUTER_POLICY_CONFIG": router_policy()} if resolved.shared_with_batch else {}),
            **_chat_template(resolved),
            **frontend.env,
        }
        frontend_process = Process(
            name="frontend",
            role="frontend",
            image=frontend.image or f"{_FRONTEND_REPOSITORY}:{resolved.engine.version}",
            command=("python3", "-m", "dynamo.frontend"),
            arguments=command_line(arguments),
            environment=environment,
            ports=(_HTTP,),
            probes=probes(_HTTP, startup_path="/live", live_path="/live", startup_seconds=300),
            resources=replace(ENTRY_POINT_RESOURCES, cpu=size.cpu, memory_mib=size.memory_mib),
            architecture=SYSTEM_ARCHITECTURE,
            tolerations=(),
            replicas=size.replicas,
            rollout=Rollout(max_surge=1, max_unavailable=1),
            pre_stop_seconds=DEREGISTRATION_SECONDS,
            termination_grace_seconds=DEREGISTRATION_SECONDS + stream + EXIT_SECONDS,
        )
        return add_filter(
            frontend_process,
            resolved.model.engine.chosen,
            host_option="--http-host",
            port_option="--http-port",
            discovery="frontend",
            finish_seconds=_finish_seconds(resolved),
            priority_headers=self.batch_headers(resolved),
        )

    def _vocabulary_hosts(self, resolved: ResolvedWorkers, frontend: Frontend) -> tuple[str, ...]:
        """Return the hosts from which parsers download vocabularies: none if the image contains these."""
        return () if _VOCABULARIES in frontend.env else vocabulary_hosts(resolved, DYNAMO_PARSERS)

    def chat_arguments(self, resolved: ResolvedWorkers) -> Mapping[str, Argument]:
        """Return the default of thinking, which workers tell the frontend; it writes the prompts."""
        chat = resolved.model.chat
        if chat is None or chat.thinking is None:
            return {}
        return {THINKING_ARGUMENT: "enabled" if chat.thinking else "disabled"}

    def parser_arguments(self, resolved: ResolvedWorkers) -> dict[str, Argument]:
        """Return Dynamo's parsers, and the engine's own for reasoning."""
        return super().parser_arguments(resolved) | engine_reasoning(resolved)

    def workers(self, resolved: ResolvedWorkers) -> Process:
        key = resolved.model.engine.chosen
        engine = engine_of(resolved)
        sizing = worker_sizing(resolved)
        finish = _finish_seconds(resolved)
        environment: dict[str, EnvironmentValue] = {
            "DYN_SYSTEM_PORT": str(_SYSTEM.number),
            "DYN_TCP_RPC_HOST": OwnAddress(),
            "DYN_TCP_RESPONSE_STREAM_HOST": OwnAddress(),
            "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS": str(finish),
            "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(_MOVE_SECONDS),
            **engine.environment(resolved),
            **network_environment(resolved),
            **LOG_ENVIRONMENT,
            **trace_environment(resolved, ROLES[resolved.role]),
            **_chat_template(resolved),
            **resolved.model.engine.section.env,
        }
        role = ROLES[resolved.role]
        return Process(
            name=role,
            role=role,
            image=engine_image(resolved),
            command=("python3", "-m", f"dynamo.{self.frameworks[key]}"),
            arguments=command_line({**self.arguments(resolved, sizing), **trace_arguments(resolved)}),
            environment=environment,
            ports=(_SYSTEM, *telemetry_ports(environment)),
            probes=probes(
                _SYSTEM, startup_path="/health", live_path="/live", startup_seconds=startup_seconds(resolved)
            ),
            resources=worker_resources(resolved),
            architecture=resolved.types[0].architecture,
            pool=resolved.pool.name,
            replicas=resolved.workers.minimum,
            rollout=rollout(resolved),
            pre_stop_seconds=0,
            termination_grace_seconds=finish + _ending_seconds(resolved),
            engine=engine_settings(resolved, sizing),
            engine_ports=(*_worker_ports(environment), *engine.ports(resolved)),
            capabilities=capabilities(resolved),
            awaits_weights=mirror_release(resolved.model) if streams_weights(resolved) else None,
            node_cache=node_cache(resolved, engine_image(resolved)),
            tolerations=tolerations(resolved),
            nodes=resolved.nodes,
        )


def _chat_template(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return the variable with the file of the model's own chat template; none without one.

    Workers register its path and checksum, and the frontend reads it: "Ensure file exists in the same
    location on all hosts" (``lib/llm/src/model_card.rs`` of ai-dynamo/dynamo). So both have the file. The
    variable is that of ``--custom-jinja-template``, and only workers read it
    (``common/configuration/groups/runtime_args.py`` of 1.6.1).
    """
    chat = resolved.model.chat
    if chat is None or chat.text is None:
        return {}
    return {TEMPLATE_VARIABLE: FilePath("chat-template.jinja", chat.text)}


def _worker_ports(environment: Mapping[str, EnvironmentValue]) -> tuple[EnginePort, ...]:
    """Return the ports of a worker that variables set."""
    system = EnginePort(_SYSTEM.name, _SYSTEM.number, variable="DYN_SYSTEM_PORT")
    telemetry = (
        EnginePort(each.name, each.number, variable=NIXL_PORT_VARIABLE)
        for each in telemetry_ports(environment)
    )
    return (system, *telemetry)


def _finish_seconds(resolved: ResolvedWorkers) -> int:
    """Return the time in which a worker's streams may end by themselves after SIGTERM, in seconds.

    The worker has left discovery and answers until then, even if it has nothing to answer. After it, Dynamo's
    workers cancel what is still running: the variables for draining come too late for that
    (``common/utils/graceful_shutdown.py`` sets the event that ``_monitor_abort`` of ``vllm/handlers.py``, and
    the same in the workers of SGLang and TensorRT-LLM, wait for; ai-dynamo 1.6.1 and ai-dynamo/dynamo#13559).
    The frontend moves these requests to another worker, except for those with a schema or several choices
    (``lib/llm/src/migration.rs``), which end with an error.

    Where AWS ends the instance at a time of its own, the worker has ended before that.
    """
    stream = longest_stream_seconds(resolved.traffic.means, resolved.model.objectives)
    purchase = resolved.pool.purchase
    if purchase.spot:
        return min(stream, _SPOT_SECONDS - _ending_seconds(resolved))
    if purchase.capacity_block:
        return min(stream, _CAPACITY_BLOCK_SECONDS - _ending_seconds(resolved))
    return stream


def _ending_seconds(resolved: ResolvedWorkers) -> int:
    """Return the longest time from the end of its streams to the end of a worker, in seconds."""
    transfers = resolved.model.engine.tensorrt_llm is not None and resolved.role == "prefill"
    return _MOVE_SECONDS + EXIT_SECONDS + (_TRANSFER_SECONDS if transfers else 0)


def _router_settings(section: KvAwareRouting) -> Mapping[str, ArgumentValue]:
    """Return the settings of the KV router (``common/configuration/groups`` of Dynamo 1.6).

    Dynamo 1.7 removes the first two arguments for a file, ``--router-policy-config``.
    """
    settings = {
        "router-kv-overlap-score-credit": section.overlap_credit,
        "router-temperature": section.temperature,
        "active-decode-blocks-threshold": section.busy_cache_fraction,
        "active-prefill-tokens-threshold": section.busy_prefill_tokens,
        "router-session-affinity-ttl-secs": section.session_affinity_seconds,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _fetch_limits(resolved: ResolvedWorkers, vocabularies: tuple[str, ...]) -> Mapping[str, EnvironmentValue]:
    """Return proxy settings that stop a frontend from fetching the images that requests name.

    It would request the size of an image from any public host, regardless of the engine's limits
    (``fetch_image_dims`` in ``lib/llm/src/preprocessor.rs`` of ai-dynamo/dynamo; no option disables this). It
    still reads the model's metadata over HTTP from the addresses of its workers, and the vocabularies of its
    parsers from their hosts.
    """
    existing = resolved.blueprint.spec.network.existing
    ranges = (*_POD_RANGES, existing.vpc_cidr) if existing else _POD_RANGES
    direct = ",".join((*ranges, *vocabularies))
    return {"HTTP_PROXY": _CLOSED, "HTTPS_PROXY": _CLOSED, "NO_PROXY": direct}
