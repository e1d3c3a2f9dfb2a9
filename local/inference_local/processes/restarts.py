"""Starts processes again that have ended, as a cluster does with containers, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from inference_local.processes.child_processes import ProcessGroup, RunningProcess, ending_words

MAX_RESTARTS = 5
PERIOD_SECONDS = 600.0


class Restarts:
    """Starts ended processes of a group again, each a limited number of times.

    say: Called with a line for each restart.
    clock: Returns a time in seconds.
    """

    def __init__(
        self, processes: ProcessGroup, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._processes = processes
        self._say = say
        self._clock = clock
        self._times: dict[str, list[float]] = {}

    def restart_ended(self, running: Iterable[tuple[RunningProcess, Callable[[], object]]]) -> None:
        """Start again what has ended. What ended too often stays ended, and the group's `check` reports it.

        running: Processes of the group, each with a function that starts it again.
        """
        for process, start in running:
            exit_code = process.popen.poll()
            if exit_code is not None and self._may_restart(process.name):
                self._processes.forget(process)
                start()
                self._say(
                    f"{process.name} {ending_words(exit_code)}; started it again "
                    f"({len(self._times[process.name])} of {MAX_RESTARTS} times in "
                    f"{PERIOD_SECONDS / 60:g} minutes)"
                )

    def _may_restart(self, name: str) -> bool:
        """Return whether a process has restarts left, and count one."""
        now = self._clock()
        times = [each for each in self._times.get(name, []) if now - each < PERIOD_SECONDS]
        may = len(times) < MAX_RESTARTS
        self._times[name] = [*times, now] if may else times
        return may
