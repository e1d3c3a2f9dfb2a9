"""The numbers of a cluster that the shift reads and sets, whatever runs the containers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from inference_contracts.shift_configuration import ShiftedQueue, ShiftedWorkers


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The numbers of workers of a role."""

    floor: int
    """Their smallest number now."""
    replicas: int
    """How many are wanted."""
    current: int
    """How many exist."""


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """A queue for jobs."""

    quota: int
    """Its present quota of its pool's own accelerators."""
    set_quota: Callable[[int], None]
    """Sets another one. It fails if somebody else changed the quotas since this one was read."""


class ClusterNumbers(Protocol):
    """Reads and sets the numbers. Each method raises an `OperationsError` if the cluster does not answer."""

    def workers(self, workers: ShiftedWorkers) -> LiveWorkers:
        """Return the numbers of workers.

        workers: Workers of the configuration.
        """

    def set_floor(self, workers: ShiftedWorkers, floor: int) -> None:
        """Set the smallest number of workers. Their largest number stays as it is.

        floor: The number.
        """

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Return a queue for jobs.

        queue: A queue of the configuration.
        """
