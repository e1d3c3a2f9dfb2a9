"""What takes the requests of a deployment on this machine: the plan's entry point, or a stand-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inference_blueprints.serving.types import Process, Role
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.serving.process_commands import Launch, environment, frontend_command


@dataclass(frozen=True, slots=True)
class LocalFrontend(ABC):
    """The entry point of a deployment. A subclass runs one program."""

    process: Process
    """The process of a plan that it runs or replaces."""

    @property
    def replicas(self) -> int:
        """Number of processes."""
        return self.process.replicas

    @property
    @abstractmethod
    def stack(self) -> str:
        """Name of the stack as which the deployment runs here."""

    @property
    @abstractmethod
    def moves_streams(self) -> bool:
        """Whether a stream continues on another worker if its worker dies."""

    @abstractmethod
    def launch(self, port: int, home: Path, workers: Mapping[Role, Sequence[str]]) -> Launch:
        """Return how to start one of the processes.

        port: Port of 127.0.0.1 to listen on.
        home: Folder of the deployment.
        workers: Addresses of the workers of each role.
        """

    @abstractmethod
    def parts(self, release: str) -> tuple[PlatformPart, ...]:
        """Return its rows of the table of parts.

        release: Name of the deployment's release.
        """

    def replacements(self, release: str) -> tuple[Replacement, ...]:  # noqa: ARG002 -- most have the plan's settings
        """Return the settings that differ from the plan."""
        return ()


@dataclass(frozen=True, slots=True)
class DynamoFrontend(LocalFrontend):
    """Dynamo's frontend, which finds its workers itself."""

    in_place_of: str | None
    """What it replaces, such as ``llmD's router``. None for Dynamo itself."""
    variables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Variables that only this machine needs, each with the reason."""

    @property
    def stack(self) -> str:
        return "dynamo"

    @property
    def moves_streams(self) -> bool:
        return True

    def launch(self, port: int, home: Path, workers: Mapping[Role, Sequence[str]]) -> Launch:  # noqa: ARG002 -- it finds them itself
        added = {name: value for name, (value, _) in self.variables.items()}
        variables = {**self.process.environment, **added}
        return Launch(frontend_command(self.process, port), environment(variables, home))

    def replacements(self, release: str) -> tuple[Replacement, ...]:
        label = f"{release}, {self.process.role}"
        return tuple(
            Replacement(label, name, "not set", value, reason)
            for name, (value, reason) in self.variables.items()
        )

    def parts(self, release: str) -> tuple[PlatformPart, ...]:
        frontends = f"{self.replicas} NVIDIA Dynamo frontend{'s' if self.replicas > 1 else ''}"
        if self.in_place_of:
            detail = (
                f"{frontends} with Dynamo's arguments, in place of {self.in_place_of}; "
                "a relay replaces the load balancer"
            )
            return (PlatformPart(f"Router of {release}", "stand-in", detail),)
        detail = (
            f"{frontends} with the plan's arguments; a relay replaces the load balancer and distributes "
            "requests in turn"
        )
        return (PlatformPart(f"Frontends and router of {release}", "real", detail),)
