"""No router: the load balancer sends requests straight to the engines' own servers.

An Application Load Balancer sends each request to the healthy target with the fewest requests in progress
(``least_outstanding_requests``: Elastic Load Balancing, "Edit target group attributes for your Application
Load Balancer"). It knows neither caches nor lengths of requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.compiled_artefacts import compiled_artefacts
from inference_blueprints.serving.engines.node_folder import node_cache
from inference_blueprints.serving.engines.own_server import OwnServer, ParserFlags, RequestCounter
from inference_blueprints.serving.engines.worker_sizing import engine_of, worker_sizing
from inference_blueprints.serving.estimates.node_copies import streams_weights
from inference_blueprints.serving.estimates.request_estimates import longest_stream_seconds
from inference_blueprints.serving.nodes.node_share import scheduler, tolerations
from inference_blueprints.serving.nodes.rollout import rollout
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import (
    DEREGISTRATION_SECONDS,
    EXIT_SECONDS,
    ROLES,
    engine_image,
    engine_settings,
    probes,
    startup_seconds,
    worker_resources,
)
from inference_blueprints.serving.stacks.request_filter import add_filter
from inference_blueprints.serving.stacks.request_tracing import trace_arguments, trace_environment
from inference_blueprints.serving.stacks.serving_stack import ServingStack
from inference_blueprints.serving.types import Port, Process
from inference_blueprints.serving.weights_loading import mirror_release

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
        stream = longest_stream_seconds(resolved.model.workload, resolved.model.objectives)
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
                **engine.environment(resolved),
                **trace_environment(resolved, role),
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
