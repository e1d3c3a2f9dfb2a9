"""What runs for one deployment on this machine: a frontend, and the workers of each role."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.serving.command_line import model_names
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, Process, Role
from inference_catalog import LatencyProfile
from inference_local.serving.image_requests import ImageLimits
from inference_local.serving.local_frontend import LocalFrontend
from inference_local.serving.platform_parts import PlatformPart, Replacement, State
from inference_local.serving.process_commands import Launch


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Where a worker process runs."""

    home: Path
    """Folder of its deployment. The folder ``model`` in it holds tokenizer and configuration."""
    address: str
    """An address of the loopback network that no other worker process has."""
    pages_port: int
    """Port for its health and its metrics, if the plan does not state one."""

    @property
    def model_directory(self) -> Path:
        """Folder with the tokenizer and the configuration of the model."""
        return self.home / "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWorkers(ABC):
    """The workers of one role. A subclass runs one kind of engine."""

    planned: Process
    """Their process in the plan."""
    replicas: int
    """Number of workers on this machine."""
    context_length: int
    """Maximum length of prompt and answer together, in tokens."""
    profile: LatencyProfile | None
    """Latency profile of the workers. None without one."""

    @property
    def name(self) -> str:
        """Name of their process in the plan."""
        return self.planned.name

    @property
    def role(self) -> Role:
        """Their role."""
        return self.planned.role

    @property
    def aliases(self) -> tuple[str, ...]:
        """Names in requests besides that of the model."""
        return model_names(self.planned.arguments)[1:]

    @property
    def maximum(self) -> int:
        """Largest number of workers. More than `replicas` if their number follows the load."""
        return self.replicas

    @property
    def at_once(self) -> int:
        """Requests that a worker computes at once."""
        return self.planned.engine.max_num_seqs if self.planned.engine else 1

    @property
    def answers_with_structure_apart(self) -> bool:
        """Whether another name of the model answers what demands a structure (`structured_answers`)."""
        return False

    @property
    def targets(self) -> Mapping[str, float]:
        """Targets of the autoscaler that differ from the plan, by trigger."""
        return {}

    @property
    def seconds_before_sigterm(self) -> float:
        """How long a worker that goes gets no new requests before its SIGTERM.

        Most engines serve their streams after the signal.
        """
        return 0.0

    @property
    def by_process(self) -> tuple[int, ...]:
        """Number of workers in each of their processes on this machine, also of those that start later."""
        return (1,) * self.maximum

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """Settings of the plan that have another value on this machine."""
        return ()

    def pages_at(self, place: WorkerPlace) -> tuple[int, str]:  # noqa: ARG002 -- subclasses use it
        """Return the port of health and metrics of a process, and the path of its health."""
        probe = self.planned.probes.readiness
        (port,) = [port.number for port in self.planned.ports if port.name == probe.port]
        return port, probe.path

    @property
    @abstractmethod
    def state(self) -> State:
        """Whether the engines are real or simulated."""

    @property
    @abstractmethod
    def detail(self) -> str:
        """A description of the engines for the table of parts."""

    @property
    @abstractmethod
    def answers(self) -> str:
        """A description of where the words of the answers come from."""

    @abstractmethod
    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        """Return how to start one of their processes.

        model: Name under which requests ask for the model.
        workers: Number of workers in the process.
        """

    def sidecars(self, place: WorkerPlace) -> Mapping[str, Launch]:  # noqa: ARG002 -- most have none
        """Return how to start what runs beside one of their processes, by name."""
        return {}

    def sidecar_parts(self, release: str) -> tuple[PlatformPart, ...]:  # noqa: ARG002 -- most have none
        """Return the rows of the table of parts for what runs beside their processes."""
        return ()

    def api(self, place: WorkerPlace) -> str:
        """Return host and port at which one of their processes, or its sidecar, takes requests."""
        # The one that admits known callers does not run here: all of this machine is the loopback address.
        sidecars = [each for each in self.planned.sidecars if not each.certificates]
        ports = sidecars[0].ports if sidecars else self.planned.ports
        return f"{place.address}:{ports[0].number}"


@dataclass(frozen=True, slots=True)
class LocalDeployment:
    """One deployment on this machine."""

    model: ModelPlan
    """The model that it serves."""
    plan: DeploymentPlan
    """Its processes."""
    frontend: LocalFrontend
    """Its entry point."""
    workers: tuple[LocalWorkers, ...]
    """The workers of each role: aggregated, or prefill and decode."""
    answer_tokens: int
    """Answer length for requests that state none: the workload's mean."""
    images: ImageLimits | None
    """Limits on the images in requests, which become words. None if the engines read images."""

    @property
    def answers_with_structure_apart(self) -> bool:
        """Whether another name of the model answers what demands a structure (`structured_answers`)."""
        return any(each.answers_with_structure_apart for each in self.workers)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Names in requests besides that of the model."""
        return self.workers[0].aliases

    @property
    def worker_count(self) -> int:
        """Number of workers of all roles."""
        return sum(each.replicas for each in self.workers)

    @property
    def context_length(self) -> int:
        """Maximum length of prompt and answer together, in tokens."""
        return min(each.context_length for each in self.workers)

    @property
    def profile(self) -> LatencyProfile | None:
        """Latency profile of the workers that generate tokens. None if the workers of any role have none."""
        known = [each.profile for each in self.workers]
        return known[-1] if all(known) else None
