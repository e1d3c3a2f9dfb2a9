"""One task: its containers in the order of their dependencies, until all have stopped.

Sources: API ContainerDependency (order, reversed at stop), ContainerDefinition (essential, startTimeout), and
stopped-task-error-codes.html (reasons).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from inference_local.emulator.ecs.agent.container_process import ContainerProcess, is_met
from inference_local.emulator.ecs.control.cluster_state import ContainerState, StopCode, TaskEnd

_LOOK_SECONDS: Final = 0.05
#: "ECS_CONTAINER_START_TIMEOUT": the agent's own limit is for a start by Docker, not for dependencies. A
#: dependency without startTimeout is waited for without end.
_WITHOUT_END: Final = float("inf")
_EXITED: Final = TaskEnd(StopCode.ESSENTIAL_EXITED, "Essential container in task exited")


@dataclass(frozen=True)
class TaskReports:
    """What a task tells the control plane: states of containers, and its end with code and reason."""

    containers: Callable[[Mapping[str, ContainerState]], None]
    ended: Callable[[Mapping[str, ContainerState], TaskEnd], None]


class TaskProcess:
    """Runs a task in a thread of its own.

    name: For the thread.
    containers: Its containers, not started.
    reports: Called from the thread.
    """

    def __init__(self, name: str, containers: list[ContainerProcess], reports: TaskReports) -> None:
        self._containers = {each.name: each for each in containers}
        self._reports = reports
        self._stop = threading.Event()
        self._killed = threading.Event()
        self._began = time.monotonic()
        self._end: TaskEnd | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def pids(self) -> dict[str, int]:
        """The process of each container that runs."""
        return {each.name: each.pid for each in self._containers.values() if each.pid and not each.has_ended}

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the task. It ends when its containers have."""
        self._stop.set()

    def kill(self) -> None:
        """End every process at once and tell nothing, without waiting: the caller may hold a lock."""
        self._killed.set()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def _run(self) -> None:
        told: dict[str, ContainerState] = {}
        while True:
            for each in self._containers.values():
                each.look()
            if self._killed.is_set():
                for each in self._containers.values():
                    each.kill()
                return
            if self._stop.is_set() or self._end is not None:
                self._stop_some()
            else:
                self._start_some()
            states = {name: replace(each.state) for name, each in self._containers.items()}
            if all(each.has_ended for each in self._containers.values()):
                self._reports.ended(states, self._end or _EXITED)
                return
            if states != told:
                told = states
                self._reports.containers(states)
            time.sleep(_LOOK_SECONDS)

    def _start_some(self) -> None:
        """Start what may start, and see whether the task must end."""
        for each in self._containers.values():
            if each.is_essential and each.has_ended:
                self._end = _EXITED
                return
            if each.has_started:
                continue
            met = [self._is_met(rule) for rule in each.definition.get("dependsOn", ())]
            if None in met:
                self._end = TaskEnd(
                    StopCode.FAILED_TO_START,
                    f"DependencyError: container {each.name} cannot start: "
                    f"{_words(each, self._containers, self._is_met)}",
                )
                return
            if all(met):
                each.start()

    def _is_met(self, rule: Mapping[str, str]) -> bool | None:
        dependency = self._containers[rule["containerName"]]
        met = is_met(dependency, rule["condition"])
        limit = float(dependency.definition.get("startTimeout") or _WITHOUT_END)
        if met is False and time.monotonic() - self._began > limit:
            return None
        return met

    def _stop_some(self) -> None:
        """Stop containers on which no running one depends: "for container shutdown it is reversed"."""
        for each in self._containers.values():
            needed = any(
                rule["containerName"] == each.name
                for other in self._containers.values()
                if not other.has_ended and other is not each
                for rule in other.definition.get("dependsOn", ())
            )
            if not each.has_ended and not needed:
                each.stop()


def _words(
    container: ContainerProcess,
    others: Mapping[str, ContainerProcess],
    is_met_now: Callable[[Mapping[str, str]], bool | None],
) -> str:
    failed = [rule for rule in container.definition["dependsOn"] if is_met_now(rule) is None]
    return "; ".join(
        f"{rule['containerName']} did not reach {rule['condition']} "
        f"(exit code {others[rule['containerName']].state.exit_code})"
        for rule in failed
    )
