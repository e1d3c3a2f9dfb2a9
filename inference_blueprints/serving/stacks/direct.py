"""No router: the load balancer sends requests straight to the engines' own servers.

An Application Load Balancer sends each request to the healthy target with the fewest requests in progress
(``least_outstanding_requests``: Elastic Load Balancing, "Edit target group attributes for your Application
Load Balancer"). It knows neither caches nor lengths of requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType

from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.serving_engine import OwnServer, ParserFlags, RequestCounter
from inference_blueprints.serving.engines.vllm_neuron import ARTEFACTS_FOLDER, LOGICAL_CORE_CONFIG
from inference_blueprints.serving.engines.worker_sizing import engine_of, worker_sizing
from inference_blueprints.serving.estimates.node_copies import node_cache, streams_weights
from inference_blueprints.serving.estimates.request_estimates import longest_stream_seconds
from inference_blueprints.serving.nodes.node_share import scheduler, tolerations
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import (
    DEREGISTRATION_SECONDS,
    EXIT_SECONDS,
    ROLES,
    engine_image,
    engine_settings,
    probes,
    rollout,
    startup_seconds,
    user_environment,
    worker_resources,
)
from inference_blueprints.serving.stacks.request_filter import add_filter
from inference_blueprints.serving.stacks.serving_stack import ServingStack, trace_arguments, trace_environment
from inference_blueprints.serving.types import CompiledArtefacts, Port, Process, WeightsBucket
from inference_blueprints.serving.weights_loading import mirror_release, never_change
from inference_contracts.records import dataclass

# The key under which the compiled artefacts of a worker on Neuron are kept in S3.
#
# vLLM with NxD Inference loads what its folder holds, whatever its arguments say: "any differing model
# configurations […] will not trigger re-compilation" (``vllm-user-guide-v1.rst``, Loading pre-compiled
# models). So everything that changes the compiled program is in the key, and what is not known to change
# nothing is too.

#: Arguments that name, route or parse, and compile nothing. Any other argument changes the key.
_WITHOUT_EFFECT = frozenset(
    {
        "model",
        "revision",
        "served-model-name",
        "reasoning-parser",
        "tool-call-parser",
        "enable-auto-tool-choice",
    }
)
_PREFIX = "neuron"
#: Time without renewal after which another worker may compile. Workers renew their claim each minute.
_CLAIM_SECONDS = 600


@dataclass(frozen=True, slots=True)
class ArtefactParts:
    """All that changes compiled artefacts."""

    model: str
    """Repository on the Hub."""
    revision: str
    """Its commit."""
    image: str
    """Image with its tag, which names the releases of vLLM, the plug-in and the Neuron SDK."""
    accelerator: str
    """Kind of device, which is the target of the compiler."""
    cores: int
    """Logical cores over which layers are split."""
    logical_core_config: int
    """Physical cores per logical core; 1 where they cannot be grouped."""
    weight_type: str
    arguments: Mapping[str, Argument]
    """Arguments of the server that compile something: lengths, batch sizes, buckets, types, and the
    user's."""
    environment: Mapping[str, str]
    """The user's variables."""


def artefact_key(parts: ArtefactParts) -> str:
    """Return the key of artefacts: equal for equal parts, whatever their order.

    parts: What changes them.
    Returns: The prefix in the bucket, ``neuron/<32 hexadecimal digits>``.
    """
    import hashlib

    text = json.dumps(asdict(parts), sort_keys=True, separators=(",", ":"))
    return f"{_PREFIX}/{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def compiled_artefacts(resolved: ResolvedWorkers, image: str, health_url: str) -> CompiledArtefacts | None:
    """Return where a worker keeps its compiled artefacts; None if it keeps none.

    image: The worker's image.
    health_url: Address at which the worker's own pod answers 200 once it has compiled.
    """
    parts = artefact_parts(resolved, image)
    if parts is None:
        return None
    key = artefact_key(parts)
    return CompiledArtefacts(
        folder=ARTEFACTS_FOLDER,
        key=key,
        environment={
            "ARTEFACTS_BUCKET": WeightsBucket(),
            "ARTEFACTS_KEY": key,
            "ARTEFACTS_FOLDER": ARTEFACTS_FOLDER,
            "ARTEFACTS_CLAIM_SECONDS": str(_CLAIM_SECONDS),
            "ARTEFACTS_COMPILE_SECONDS": str(2 * engine_of(resolved).compile_seconds),
            "ARTEFACTS_HEALTH_URL": health_url,
        },
    )


def artefact_parts(resolved: ResolvedWorkers, image: str) -> ArtefactParts | None:
    """Return what changes the artefacts of a worker; None if they cannot be shared.

    They are shared only if the model is that of a commit: a branch could change under the same key.
    """
    if resolved.model.engine.vllm_neuron is None or not never_change(resolved.model):
        return None
    arguments = engine_of(resolved).arguments(resolved, worker_sizing(resolved))
    grouped = LOGICAL_CORE_CONFIG if resolved.accelerator.name == "trainium2" else 1
    return ArtefactParts(
        model=resolved.model.weights.hugging_face or "",
        revision=resolved.model.weights.revision or "",
        image=image,
        accelerator=resolved.accelerator.name,
        cores=resolved.tensor_parallel_size,
        logical_core_config=grouped,
        weight_type=resolved.shape.weight_type,
        arguments={name: value for name, value in arguments.items() if name not in _WITHOUT_EFFECT},
        environment=dict(resolved.model.engine.section.env),
    )


_HTTP = Port("http", 8000)
#: Name of the process. Dynamo's and llm-d's workers have other names, so a release can change its stack.
_NAME = "server"
#: In a folder that is the pod's, and not the container's.
_STATE = "/cache/request-suspects.json"


class Direct(ServingStack):
    """The engines' own servers behind the load balancer."""

    chart = "direct-model"
    serves_directly = True
    runs_own_servers = True
    frameworks: Mapping[str, str] = MappingProxyType(
        {name: name for name, engine in ENGINES.items() if engine.own_server}
    )
    """Engines that answer the OpenAI API themselves."""

    def request_counter(self, engine: str) -> RequestCounter:
        return _server(engine).requests

    def parser_flags(self, engine: str) -> ParserFlags | None:
        return _server(engine).parsers

    def service_account(self, release: str) -> str:
        """Return the service account of the workers, which the chart creates."""
        return f"{release}-{_NAME}"

    def processes(self, roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
        """Return the workers: they are the entry point."""
        return tuple(map(self.workers, roles))

    def entry_point(self, resolved: ResolvedWorkers) -> Process:
        return self.workers(resolved)

    def workers(self, resolved: ResolvedWorkers) -> Process:
        engine, sizing = engine_of(resolved), worker_sizing(resolved)
        server = _server(resolved.model.engine.chosen)
        stream = longest_stream_seconds(resolved.traffic.means, resolved.model.objectives)
        # A server that drops its answers at SIGTERM gets the signal after the longest of them.
        before_end = DEREGISTRATION_SECONDS + (0 if server.finishes_answers else stream)
        arguments = {**self.arguments(resolved, sizing), **trace_arguments(resolved)}
        role = ROLES[resolved.role]
        process = Process(
            name=_NAME,
            role=role,
            image=engine_image(resolved),
            command=server.command,
            arguments=engine.server_arguments(arguments, _HTTP.number, stream),
            environment={
                **user_environment(resolved),
                **engine.environment(resolved),
                **trace_environment(resolved, role),
                **(engine.chat_environment(resolved.model.chat) if resolved.model.chat else {}),
                **resolved.model.engine.section.env,
            },
            ports=(_HTTP,),
            probes=probes(
                _HTTP,
                startup_path=server.health_path,
                live_path=server.health_path,
                startup_seconds=startup_seconds(resolved),
            ),
            resources=worker_resources(resolved),
            architecture=resolved.types[0].architecture,
            pool=resolved.pool.name,
            replicas=resolved.workers.minimum,
            rollout=rollout(resolved),
            pre_stop_seconds=before_end,
            termination_grace_seconds=DEREGISTRATION_SECONDS + stream + EXIT_SECONDS,
            engine=engine_settings(resolved, sizing),
            awaits_weights=mirror_release(resolved.model) if streams_weights(resolved) else None,
            node_cache=node_cache(resolved, engine_image(resolved)),
            artefacts=compiled_artefacts(
                resolved,
                engine_image(resolved),
                f"http://127.0.0.1:{_HTTP.number}{server.health_path}",
            ),
            tolerations=tolerations(resolved),
            scheduler=scheduler(resolved),
            has_python=server.has_python,
        )
        if not server.has_python:
            return process
        return add_filter(
            process,
            resolved.model.engine.chosen,
            host_option="--host",
            port_option="--port",
            discovery="program",
            state=_STATE,
        )


def _server(engine: str) -> OwnServer:
    """Return the server of an engine. Raises ValueError if it has none. The checks report it."""
    server = ENGINES[engine].own_server
    if server is None:
        raise ValueError(f"the engine '{engine}' has no server of its own")
    return server
