"""One worker process of a role."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import Role
from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """Workers that share a process on this machine."""

    deployment: LocalDeployment
    kind: LocalWorkers
    """The workers of their role."""
    index: int
    """Index of the process within its role, from 0."""

    @property
    def name(self) -> str:
        """The name of the process."""
        return f"{self.kind.name} {self.index + 1} of {self.deployment.plan.release}"

    @property
    def role(self) -> Role:
        """Role of the workers."""
        return self.kind.role

    @property
    def workers(self) -> int:
        """Number of workers in this process."""
        return self.kind.by_process[self.index]

    @property
    def is_first(self) -> bool:
        """Whether the platform starts with this process. Others start when load rises."""
        return sum(self.kind.by_process[: self.index]) < self.kind.replicas

    @property
    def workers_of_role(self) -> int:
        """Number of workers in all processes of the role."""
        return self.kind.replicas
