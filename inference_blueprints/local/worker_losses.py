"""What became of streams whose worker was killed."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import Role


@dataclass(frozen=True, slots=True)
class WorkerLoss:
    """One process of workers, killed while it answered.

    Parameters
    ----------
    deployment
        Release of the deployment.
    role
        What its workers do of a request.
    workers
        How many of that role there are.
    killed
        How many were killed; 0 where there is only one, whose streams none could take over.
    streams
        Streams that were under way in the deployment, on whichever worker.
    moved
        How often the frontends gave one to another worker.
    lost
        Streams that did not bring every token asked for.
    """

    deployment: str
    role: Role
    workers: int
    killed: int = 0
    streams: int = 0
    moved: int = 0
    lost: int = 0

    @property
    def completed(self) -> int:
        """Streams that brought every token asked for."""
        return self.streams - self.lost
