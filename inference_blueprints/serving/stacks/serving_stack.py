"""The base class of serving stacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import inference_catalog as catalog
from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.serving_engine import ParserFlags, RequestCounter
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, common_zone
from inference_blueprints.serving.types import EndpointPicker, EnvironmentValue, Process, Role
from inference_blueprints.spec.types import NO_PARSER, ArgumentValue, Parsers
from inference_catalog import Engine, Flag, ParserNames
from inference_catalog.catalogue import shipped
from inference_contracts.trace_names import (
    EXPORT_SWITCH,
    TRACES_ENDPOINT_ON_EKS,
    traces_endpoint_on_ecs,
)

# Traces of requests: what a process needs to send its spans.
#
# A frontend decides which requests are traced, and each process behind it follows that decision
# (``parentbased_traceidratio`` of the OpenTelemetry Environment Variable Specification). Dynamo's own
# variable for the share is ``OTEL_TRACES_SAMPLE_RATIO`` (ai-dynamo 1.6.1); SDKs of Python read the two of the
# specification.

#: Dynamo sends its logs wherever it sends traces, and nothing switches that off. They have no receiver, since
#: Fluent Bit or `awslogs` reads them from the containers, so each attempt would add an error to the logs. An
#: hour between two attempts leaves one per 512 lines (the batch of the OpenTelemetry specification).
#: https://docs.nvidia.com/dynamo/v1.3.0/user-guides/observability-local
#: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-logrecord-processor
_LOG_EXPORT_MILLISECONDS: Final = 3_600_000


def trace_environment(resolved: ResolvedWorkers, role: Role) -> Mapping[str, EnvironmentValue]:
    """Return the variables of a process of Dynamo or vLLM; none without traces.

    resolved: Workers of the deployment.
    role: What the process does.
    """
    traces = _traces(resolved)
    if traces is None:
        return {}
    ratio = f"{traces:g}"
    return {
        EXPORT_SWITCH: "true",
        "OTEL_BLRP_SCHEDULE_DELAY": f"{_LOG_EXPORT_MILLISECONDS}",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": _endpoint(resolved),
        "OTEL_SERVICE_NAME": f"{resolved.release}-{role}",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": ratio,
        "OTEL_TRACES_SAMPLE_RATIO": ratio,
    }


def trace_arguments(resolved: ResolvedWorkers) -> Mapping[str, ArgumentValue]:
    """Return the arguments with which an engine continues the trace of a request; none without traces.

    vLLM sends spans of its own only if it has an endpoint (``vllm/tracing/otel.py`` of 0.31.0).
    """
    if _traces(resolved) is None or resolved.model.engine.chosen != "vllm":
        return {}
    return {"otlp-traces-endpoint": _endpoint(resolved)}


def _endpoint(resolved: ResolvedWorkers) -> str:
    blueprint = resolved.blueprint
    if blueprint.spec.cluster.ecs:
        return traces_endpoint_on_ecs(blueprint.metadata.name)
    return TRACES_ENDPOINT_ON_EKS


def _traces(resolved: ResolvedWorkers) -> float | None:
    """Return the share of requests that are traced; None without traces."""
    observability = resolved.blueprint.spec.observability
    return observability.traces.sample_ratio if observability and observability.traces else None


# The parsers that separate reasoning and tool calls from a model's answers.

#: The engine's own argument. Under Dynamo, it tells the engine where reasoning ends and a grammar begins
#: (Dynamo documentation, "Reasoning Parsing (Dynamo)"). Dynamo itself parses.
ENGINE_REASONING = "reasoning-parser"


def parser_names(resolved: ResolvedWorkers, program: str) -> ParserNames:
    """Return the parsers of a program: the blueprint's, else those of the model's catalogue entry.

    A model that writes no text has none.
    """
    if resolved.model.task != "generate":
        return ParserNames()
    entry = resolved.shape.answer_format
    known = catalog.answer_formats()[entry].parsers.get(program) if entry else None
    planned, given = known or ParserNames(), resolved.model.parsers or Parsers()
    return ParserNames(
        reasoning=_selected(given.reasoning, planned.reasoning),
        tool_call=_selected(given.tool_call, planned.tool_call),
    )


def parser_arguments(resolved: ResolvedWorkers, flags: ParserFlags) -> dict[str, Argument]:
    """Return the arguments that name the parsers of a stack's program."""
    names = parser_names(resolved, flags.program)
    each = {flags.reasoning: names.reasoning, flags.tool_call: names.tool_call}
    return {argument: name for argument, name in each.items() if name}


def engine_reasoning(resolved: ResolvedWorkers) -> dict[str, Argument]:
    """Return the engine's own reasoning parser beside Dynamo's; empty if the user names another for Dynamo.

    Dynamo's name says nothing about the engine's. With another parser, the user sets the argument.
    """
    if resolved.model.parsers and resolved.model.parsers.reasoning:
        return {}
    name = parser_names(resolved, resolved.model.engine.chosen).reasoning
    return {ENGINE_REASONING: name} if name else {}


def vocabulary_hosts(resolved: ResolvedWorkers, flags: ParserFlags) -> tuple[str, ...]:
    """Return the hosts from which the parsers in use download a vocabulary."""
    arguments = {**parser_arguments(resolved, flags), **resolved.model.engine.arguments}
    used = {arguments.get(flags.reasoning), arguments.get(flags.tool_call)} - {None}
    formats = catalog.answer_formats().values()
    needed = {
        each.vocabulary_host
        for each in formats
        if used & {each.parsers[flags.program].reasoning, each.parsers[flags.program].tool_call}
    }
    return tuple(sorted(host for host in needed if host))


def _selected(given: str | None, planned: str | None) -> str | None:
    """Return the name that counts; None if the parser is off."""
    return None if given == NO_PARSER else given or planned


class ServingStack(ABC):
    """A serving stack: the entry point in front of the engines, and how it starts their workers.

    A subclass defines `request_counter`, `frameworks`, `chart`, `parser_flags`, `service_account`,
    `entry_point` and `workers`. It overrides a default only where the stack differs from it.
    """

    serves_directly: bool = False
    """Whether requests arrive at the load balancer's choice of a worker, without a process in between."""

    runs_own_servers: bool = False
    """Whether the engines' own servers run, and not Dynamo's workers."""

    address_options: tuple[str, str] = ("--host", "--port")
    """Options of the entry point's program, or of the filter before it, with the address and the port."""

    fetching_from_any_host: frozenset[str] = frozenset()
    """Engines whose workers fetch images from any public host on this stack, by the blueprint's key."""

    @property
    @abstractmethod
    def frameworks(self) -> Mapping[str, str]:
        """Engines that the stack runs: its own name for each, by the blueprint's key."""

    @property
    @abstractmethod
    def chart(self) -> str:
        """The chart of its deployments, by the key of ``helm_values/charts.yaml``."""

    @abstractmethod
    def service_account(self, release: str) -> str:
        """Return the Kubernetes service account of a deployment's workers."""

    @abstractmethod
    def entry_point(self, resolved: ResolvedWorkers) -> Process:
        """Return the process that answers the OpenAI API and routes requests."""

    @abstractmethod
    def workers(self, resolved: ResolvedWorkers) -> Process:
        """Return the process that runs the engine in one role."""

    @abstractmethod
    def request_counter(self, engine: str) -> RequestCounter:
        """Return how the workers of an engine, by the blueprint's key, count requests."""

    @abstractmethod
    def parser_flags(self, engine: str) -> ParserFlags | None:
        """Return the arguments that name the parsers of an engine's answers; None if there are none."""

    def owned_arguments(self, engine: str) -> Mapping[str, str]:
        """Return the arguments of an engine that only the plan may set, each with the reason."""
        owned: dict[str, str] = {}
        # A flag that a newer release brings keeps its reason, also in a release recorded by the user.
        for entry in shipped().engine_releases[engine].values():
            owned |= entry.owned_arguments
            owned |= entry.server_owned_arguments if self.runs_own_servers else {}
        return owned

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> dict[str, Argument]:
        """Return a worker's arguments by name without dashes: the engine's, and the parsers of answers."""
        arguments = engine_of(resolved).arguments(resolved, sizing)
        added = {**self.chat_arguments(resolved), **self.parser_arguments(resolved)}
        return arguments | {name: value for name, value in added.items() if name not in arguments}

    def chat_arguments(self, resolved: ResolvedWorkers) -> Mapping[str, Argument]:
        """Return the arguments by which the engine's own server writes prompts as the model's `chat` says."""
        chat = resolved.model.chat
        return engine_of(resolved).chat_arguments(chat) if chat else {}

    def parser_arguments(self, resolved: ResolvedWorkers) -> dict[str, Argument]:
        """Return the arguments that name the parsers of answers, unless the user sets them."""
        flags = self.parser_flags(resolved.model.engine.chosen)
        return parser_arguments(resolved, flags) if flags else {}

    def flags(self, engine: Engine) -> Mapping[str, Flag]:
        """Return the flags that the stack's workers accept, by name."""
        return own_server_flags(engine) if self.runs_own_servers else engine.flags

    def processes(self, roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
        """Return the processes of a deployment with workers of these roles, its entry point first."""
        entry_point = replace(self.entry_point(roles[0]), zone=common_zone(roles))
        return (entry_point, *map(self.workers, roles))

    def picker(self, roles: tuple[ResolvedWorkers, ...]) -> EndpointPicker | None:  # noqa: ARG002 -- llm-d's
        """Return the settings of llm-d's router. None for a stack without that router."""
        return None

    def batch_headers(self, resolved: ResolvedWorkers) -> Mapping[str, str]:  # noqa: ARG002 -- Dynamo's
        """Return the headers with which requests of batch give way to interactive ones. Empty without any."""
        return {}


def own_server_flags(engine: Engine) -> Mapping[str, Flag]:
    """Return the flags of an engine's own server: the engine's own, and none of Dynamo's worker."""
    own = {name: flag for name, flag in engine.flags.items() if flag.owner != "dynamo"}
    return {**own, **engine.server_flags}
