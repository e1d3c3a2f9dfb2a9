"""The base class of serving stacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

import inference_catalog as catalog
from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.own_server import ParserFlags, RequestCounter
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, common_zone
from inference_blueprints.serving.stacks.answer_parsers import parser_arguments
from inference_blueprints.serving.types import EndpointPicker, Process
from inference_catalog import Engine, Flag


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
