"""The base class of serving stacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from inference_blueprints.catalog import Engine, Flag
from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, common_zone
from inference_blueprints.serving.stacks.answer_parsers import ParserFlags, parser_arguments
from inference_blueprints.serving.types import EndpointPicker, Process


@dataclass(frozen=True, slots=True)
class RequestCounter:
    """The Prometheus counter of the requests that a worker received.

    Parameters
    ----------
    name
        Full name of its samples.
    label
        The label of the samples that count, such as ``endpoint="generate"``; empty for all.
    """

    name: str
    label: str = ""


class ServingStack(ABC):
    """A serving stack: the entry point in front of the engines, and how it starts their workers.

    A subclass defines `request_counter`, `frameworks`, `chart`, `parser_flags`, `service_account`,
    `entry_point` and `workers`. It overrides a default only where the stack differs from it.
    """

    #: Engine arguments that only the stack may set, each with the reason.
    owned_arguments: Mapping[str, str] = MappingProxyType({})

    #: Engines whose workers fetch images from any public host on this stack, by the blueprint's key.
    fetching_from_any_host: frozenset[str] = frozenset()

    #: How the stack's workers count requests.
    request_counter: RequestCounter

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

    @property
    @abstractmethod
    def parser_flags(self) -> ParserFlags:
        """The arguments that name the parsers of answers."""

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> dict[str, Argument]:
        """Return a worker's arguments by name without dashes: the engine's, and the parsers of answers."""
        arguments = engine_of(resolved).arguments(resolved, sizing)
        parsers = self.parser_arguments(resolved)
        return arguments | {name: value for name, value in parsers.items() if name not in arguments}

    def parser_arguments(self, resolved: ResolvedWorkers) -> dict[str, Argument]:
        """Return the arguments that name the parsers of answers, unless the user sets them."""
        return parser_arguments(resolved, self.parser_flags)

    def flags(self, engine: Engine) -> Mapping[str, Flag]:
        """Return the flags that the stack's workers accept, by name: by default, those of Dynamo's worker."""
        return engine.flags

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
