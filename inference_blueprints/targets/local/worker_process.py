"""One process of workers among those of its role."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import Role
from inference_blueprints.targets.local.local_target import LocalDeployment, LocalWorkers


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """Workers that live and die together on this machine.

    Parameters
    ----------
    deployment
        What they belong to.
    kind
        The workers of their role.
    index
        Which of the processes of the role it is, from 0.
    """

    deployment: LocalDeployment
    kind: LocalWorkers
    index: int

    @property
    def name(self) -> str:
        """The name of the process."""
        return f"{self.kind.name} {self.index + 1} of {self.deployment.plan.release}"

    @property
    def role(self) -> Role:
        """What the workers do of a request."""
        return self.kind.simulated.role

    @property
    def workers(self) -> int:
        """Workers in this process."""
        return self.kind.by_process[self.index]

    @property
    def workers_of_role(self) -> int:
        """Workers in all processes of the role."""
        return self.kind.simulated.replicas
