"""The base class of serving stacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

import inference_catalog as catalog
from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.serving_engine import ParserFlags, RequestCounter
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, common_zone
from inference_blueprints.serving.types import EndpointPicker, Process
from inference_blueprints.spec.types import NO_PARSER, Parsers
from inference_catalog import Engine, Flag, ParserNames

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
        entry = catalog.engine(engine)
        server = entry.server_owned_arguments if self.runs_own_servers else {}
        return {**entry.owned_arguments, **server}

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> dict[str, Argument]:
        """Return a worker's arguments by name without dashes: the engine's, and the parsers of answers."""
        arguments = engine_of(resolved).arguments(resolved, sizing)
        parsers = self.parser_arguments(resolved)
        return arguments | {name: value for name, value in parsers.items() if name not in arguments}

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
