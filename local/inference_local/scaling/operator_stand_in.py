"""Stand-in for what makes pods of a wanted number of workers: Dynamo's operator, or a Deployment."""

from __future__ import annotations

from dataclasses import dataclass

from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers
from inference_local.serving.running_workers import RunningWorkers, WorkerProcess


@dataclass(frozen=True, slots=True)
class ElasticRole:
    """Workers of one role whose number changes."""

    deployment: LocalDeployment
    workers: LocalWorkers
    """Their kind."""
    start_seconds: float
    """Time from the decision for a worker to its process, as for a new node and its weights."""

    @property
    def name(self) -> str:
        """Release and role."""
        return f"{self.deployment.plan.release}-{self.workers.name}"

    @property
    def model(self) -> str:
        """Name of their model."""
        return self.deployment.model.name

    @property
    def accelerators(self) -> int:
        """Accelerators of one worker."""
        accelerators = self.workers.planned.resources.accelerators
        return accelerators.count * self.workers.planned.nodes if accelerators else 0


class OperatorStandIn:
    """Starts and ends worker processes of one role.

    A worker starts after its cold start. One that goes gets SIGTERM, as its pod would, after its preStop
    action, and its place is free when its process has ended. Workers that still start go first, then the
    youngest, as those of a Deployment.

    workers: The worker processes of the run.
    """

    def __init__(self, workers: RunningWorkers, role: ElasticRole) -> None:
        self._workers = workers
        self._role = role
        self._places = [each for each in workers.of(role.deployment) if each.kind is role.workers]
        self._serving = [each for each in self._places if workers.runs(each)]
        self._starting: list[tuple[float, WorkerProcess]] = []
        self.wanted = len(self._serving)

    @property
    def serving(self) -> int:
        """Workers whose process runs and is not ending."""
        return len(self._serving)

    @property
    def occupying(self) -> int:
        """Workers that hold accelerators: they start, serve or end."""
        ending = sum(self._workers.is_ending(each) for each in self._places)
        return len(self._serving) + len(self._starting) + ending

    def step(self, now_seconds: float, wanted: int) -> None:
        """Bring the number of workers nearer to the wanted one.

        now_seconds: Seconds on a clock that never goes back.
        wanted: Number of workers.
        """
        self.wanted = wanted
        begun = [each for due, each in self._starting if due <= now_seconds]
        self._starting = [(due, each) for due, each in self._starting if due > now_seconds]
        self._workers.begin_all(begun)
        self._serving += begun
        while len(self._serving) + len(self._starting) > wanted:
            if self._starting:
                self._starting.pop()
            else:
                self._workers.end(self._serving.pop())
        for place in self._free()[: wanted - len(self._serving) - len(self._starting)]:
            self._starting.append((now_seconds + self._role.start_seconds, place))

    def _free(self) -> list[WorkerProcess]:
        taken = {each.name for each in self._serving} | {each.name for _, each in self._starting}
        return [each for each in self._places if each.name not in taken and not self._workers.is_ending(each)]
