"""How checks reach the processes of a platform: on a cluster, or on this machine.

Checks of the serving layer use only this access, so that they are the same wherever the plan runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from inference_blueprints.serving.types import DeploymentPlan, Process, ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.records import dataclass

# Metrics of a platform's programs, in Prometheus' text format.


def sample_sum(metrics: str, name: str, label: str = "") -> float | None:
    """Return the sum of a metric over its labels; None if it is not exposed.

    name: Full name of the sample.
    label: Only samples with this label, such as ``status="failure"``; empty for all.
    """
    pattern = re.compile(rf"^{re.escape(name)}(\{{[^\n]*\}})? (\S+)", re.MULTILINE)
    values = [float(value) for labels, value in pattern.findall(metrics) if label in labels]
    return sum(values) if values else None


#: Longest time of one answer of a worker with accelerators.
ANSWER_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Instance:
    """One running copy of a process of the plan: a pod, or a process on this machine."""

    name: str
    """Its name, which is unique in its deployment."""
    process: str
    """Name of the process in the plan."""
    unready: str = ""
    """Why it is not ready; empty if it is."""
    restarts: tuple[str, ...] = ()
    """What was restarted in it, and why."""

    @property
    def is_ready(self) -> bool:
        """Whether it can serve requests."""
        return not self.unready


Instances = Mapping[str, Sequence[Instance]]


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """The address that callers of a model use."""

    url: str
    """Base URL of the OpenAI API, ending in ``/v1``."""
    only_in_vpc: bool
    """Whether it is out of reach outside a VPC."""
    command: str | None
    """Command that shows what is behind it; None if there is none."""


class ServingAccess(Protocol):
    """Access to the processes of a platform."""

    @property
    def answer_seconds(self) -> float:
        """Longest time of one answer."""

    def instances(self, deployment: DeploymentPlan) -> Instances:
        """Return the instances of a deployment by the name of their process."""

    def expected(self, deployment: DeploymentPlan, process: Process) -> int:
        """Return how many instances of a process should run at least."""

    def log(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the log of an instance from its start, as far as it is kept."""

    def metrics(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return all metrics of a worker in Prometheus' text format; empty if it does not answer."""

    def open_frontend(self, deployment: DeploymentPlan, instance: Instance) -> AbstractContextManager[str]:
        """Open a way to a frontend, and yield its URL without ``/v1``.

        Raises KubectlFailed if it cannot be reached.
        """

    def model_address(self, model: str) -> ModelAddress:
        """Return the address of a model."""

    def look_command(self, deployment: DeploymentPlan, process: Process) -> str:
        """Return the command that shows the state of the instances of a process."""

    def log_command(self, deployment: DeploymentPlan, instance: Instance | None, *words: str) -> str:
        """Return the command that shows the lines of a log that contain one of some words.

        instance: Whose log; None for all workers of the deployment.
        words: Words in lower case.
        """


@dataclass(frozen=True, slots=True)
class Transferred:
    """Metrics of KV transfers of a deployment's workers."""

    moved_bytes: float
    """Bytes that were transferred since the workers started."""
    failures: float
    """Failed transfers since then."""
    seconds: float = 0.0
    transfers: float = 0.0
    """`seconds`, `transfers`: Time of all transfers, and their number; 0 if the engine does not report
    them."""


class ServedPlatform(Protocol):
    """A platform whose models are served."""

    @property
    def blueprint(self) -> Blueprint:
        """The blueprint."""

    @property
    def plan(self) -> ServingPlan:
        """The plan, as it runs."""

    @property
    def access(self) -> ServingAccess:
        """Access to its processes."""

    @property
    def transferred(self) -> Mapping[str, Transferred]:
        """Transfers before the requests of the checks, by release."""

    @property
    def answered(self) -> Mapping[str, Mapping[str, float]]:
        """Requests that each process's workers had received before those of the checks, by release."""


def deployments_of(platform: ServedPlatform) -> list[DeploymentPlan]:
    """Return the deployments of all models."""
    return [deployment for model in platform.plan.models for deployment in model.deployments]
