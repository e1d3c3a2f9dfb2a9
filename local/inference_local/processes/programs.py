"""The base class of programs that start and end together: the emulator, the control plane, a platform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from inference_local.processes.child_processes import ProcessGroup


class Programs(ABC):
    """Programs that run inside a ``with`` block.

    grace_seconds: Time between SIGTERM and SIGKILL at `stop`.
    """

    def __init__(self, *, grace_seconds: float) -> None:
        self._processes = ProcessGroup(grace_seconds=grace_seconds)

    def __enter__(self) -> Self:
        self._processes.__enter__()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Make sure that every program still runs. Raises ProcessDied if one has exited."""
        self._processes.check()

    def stop(self) -> None:
        """End every program and its child processes."""
        self._processes.stop()

    @abstractmethod
    def _start(self) -> None:
        """Start the programs and wait until they are ready. On failure, end those that were started."""
