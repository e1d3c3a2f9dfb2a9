"""Outcomes of the streams whose worker was killed."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import Role


@dataclass(frozen=True, slots=True)
class WorkerLoss:
    """The outcome of killing one worker process while it served requests."""

    deployment: str
    """Release of the deployment."""
    role: Role
    workers: int
    """Number of workers of that role."""
    killed: int = 0
    """Number of killed workers. 0 if the role has one worker, because no other could continue its streams."""
    streams: int = 0
    """Streams in flight in the deployment, on any worker."""
    moved: int = 0
    """How often the frontends moved a stream to another worker."""
    lost: int = 0
    """Streams that did not return every requested token."""

    @property
    def completed(self) -> int:
        """Streams that returned every requested token."""
        return self.streams - self.lost
