"""The numbers of a cluster that the shift reads and sets, whatever runs the containers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from inference_contracts.shift_configuration import ShiftedQueue, ShiftedWorkers


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The numbers of workers of a role.

    Parameters
    ----------
    floor
        Their smallest number now.
    replicas
        How many are wanted.
    current
        How many exist.
    """

    floor: int
    replicas: int
    current: int


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """A queue for jobs.

    Parameters
    ----------
    quota
        Its present quota of its pool's own accelerators.
    set_quota
        Sets another one. It fails if somebody else changed the quotas since this one was read.
    """

    quota: int
    set_quota: Callable[[int], None]


class ClusterNumbers(Protocol):
    """Reads and sets the numbers. Each method raises an `OperationsError` if the cluster does not answer."""

    def workers(self, workers: ShiftedWorkers) -> LiveWorkers:
        """Return the numbers of workers.

        Parameters
        ----------
        workers
            Workers of the configuration.
        """

    def set_floor(self, workers: ShiftedWorkers, floor: int) -> None:
        """Set the smallest number of workers. Their largest number stays as it is.

        Parameters
        ----------
        workers
            Workers of the configuration.
        floor
            The number.
        """

    def queue(self, queue: ShiftedQueue) -> LiveQueue:
        """Return a queue for jobs.

        Parameters
        ----------
        queue
            A queue of the configuration.
        """
