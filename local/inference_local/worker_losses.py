"""Outcomes of the streams whose worker was killed."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import Role


@dataclass(frozen=True, slots=True)
class WorkerLoss:
    """The outcome of killing one worker process while it served requests.

    Parameters
    ----------
    deployment
        Release of the deployment.
    role
        Role of its workers.
    workers
        Number of workers of that role.
    killed
        Number of killed workers. 0 if the role has one worker, because no other could continue its streams.
    streams
        Streams in flight in the deployment, on any worker.
    moved
        How often the frontends moved a stream to another worker.
    lost
        Streams that did not return every requested token.
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
        """Streams that returned every requested token."""
        return self.streams - self.lost
