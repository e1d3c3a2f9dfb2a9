"""One container as a process: start, health checks, restart, stop.

Sources: API ContainerDefinition, HealthCheck, ContainerRestartPolicy, StopTask ("the equivalent of
docker stop"): SIGTERM to the container's first process; after stopTimeout, SIGKILL, exit code 137.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from inference_local.emulator.ecs.agent.container_command import ContainerCommand
from inference_local.emulator.ecs.control.cluster_state import ContainerState, Health, Shape
from inference_local.emulator.ecs.control.task_life import CheckSettings, HealthRecord
from inference_local.processes import parent_bound
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.serving import namespace

_STOP_SECONDS: Final = 30.0
_RESTART_SECONDS: Final = 300.0
#: A container that ends sooner is never seen running. Ours: AWS documents no such time.
_SEEN_SECONDS: Final = 0.5
_KILLED: Final = 128
#: Programs that a process is before it becomes its command.
_BEFORE: Final = (parent_bound.__file__.encode(), namespace.__file__.encode())


class ContainerProcess:
    """A container of a task.

    command: What runs.
    mounts: Folder of each mount path.
    in_network: Returns the command that runs a command in the task's network.
    processes: Group that its processes join.
    log_path: File of its output.
    speed: How much faster than time the intervals and start periods of checks are. Time-outs and stopTimeout
        are not changed.
    """

    def __init__(
        self,
        definition: Shape,
        command: ContainerCommand,
        mounts: Mapping[str, Path],
        *,
        in_network: Callable[[Sequence[str]], list[str]],
        processes: ProcessGroup,
        log_path: Path,
        speed: float,
    ) -> None:
        self.definition = definition
        self.name: str = definition["name"]
        self.is_essential: bool = definition.get("essential", True)
        self.state = ContainerState()
        self._command = command
        self._mounts = mounts
        self._in_network = in_network
        self._processes = processes
        self._log_path = log_path
        self._speed = speed
        self._process: RunningProcess | None = None
        self._has_begun = False
        self._started_at = 0.0
        self._kill_at: float | None = None
        self._settings = CheckSettings.of(definition.get("healthCheck") or {})
        self._record = HealthRecord(self._settings)
        self._check: subprocess.Popen[bytes] | None = None
        self._check_began = 0.0

    @property
    def has_started(self) -> bool:
        """Whether its process was started."""
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """Whether it has stopped for good."""
        return self.state.status == "STOPPED"

    @property
    def pid(self) -> int | None:
        """The id of its process."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start its process."""
        self._process = self._processes.start(
            self.name,
            self._in_network(self._command.words),
            environment=self._command.environment,
            log_path=self._log_path,
            working_directory=self._command.folder,
        )
        self._has_begun = False
        self._started_at = self._check_began = time.monotonic()
        self._record = HealthRecord(self._settings)

    def look(self) -> None:
        """Bring `state` up to date."""
        if self._process is None or self.has_ended:
            return
        now = time.monotonic()
        code = self._process.popen.poll()
        if code is not None:
            self._has_exited(self._process, code, now)
            return
        if not self._has_begun:
            self._has_begun = _runs_its_command(self._process.pid)
            self._started_at = self._check_began = now
        if self._has_begun and now - self._started_at >= _SEEN_SECONDS:
            self.state.status = "RUNNING"
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._process.popen.kill()
        if self.definition.get("healthCheck") and self.state.status == "RUNNING":
            self._look_at_check(now)

    def stop(self) -> None:
        """Send SIGTERM; `look` sends SIGKILL when stopTimeout is over. It may be called again."""
        if self._process is None:
            self.state.status = "STOPPED"
        elif self._kill_at is None and not self.has_ended and self._process.popen.poll() is None:
            self._kill_at = time.monotonic() + float(self.definition.get("stopTimeout") or _STOP_SECONDS)
            self._process.popen.terminate()

    def kill(self) -> None:
        """Kill everything of it at once."""
        if self._process is not None and not self.has_ended:
            self._processes.kill(self._process)
            self.state.status, self.state.exit_code = "STOPPED", _KILLED + 9
        self._end_check()

    def _has_exited(self, process: RunningProcess, code: int, now: float) -> None:
        self._processes.forget(process)  # what is left of a container dies with its first process
        self._end_check()
        self.state.exit_code = _KILLED - code if code < 0 else code
        policy = self.definition.get("restartPolicy") or {}
        ran = (now - self._started_at) * self._speed
        if (
            policy.get("enabled")
            and self._kill_at is None
            and self.state.exit_code not in policy.get("ignoredExitCodes", ())
            and ran >= float(policy.get("restartAttemptPeriod") or _RESTART_SECONDS)
        ):
            self.state.exit_code = None
            self.start()
            return
        self.state.status = "STOPPED"

    def _look_at_check(self, now: float) -> None:
        """Start a check when its time has come; take its result when it has one."""
        if self._check is None:
            if (now - self._check_began) * self._speed < self._settings.interval:
                return
            self._check_began = now
            words = self._command.check(self.definition["healthCheck"]["command"], self._mounts)
            try:
                self._check = subprocess.Popen(
                    self._in_network(words),
                    env=dict(self._command.environment),
                    cwd=self._command.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                self._take(passed=False)
            return
        code = self._check.poll()
        if code is None and now - self._check_began < self._settings.timeout:
            return
        self._end_check()
        self._take(passed=code == 0)

    def _take(self, *, passed: bool) -> None:
        began = (self._check_began - self._started_at) * self._speed
        self.state.health = self._record.add(passed=passed, running_seconds=began)

    def _end_check(self) -> None:
        if self._check is not None:
            if self._check.poll() is None:
                self._check.kill()
            self._check.wait()
            self._check = None


def _runs_its_command(pid: int) -> bool:
    """Whether the program that binds a process to this one has become the command."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return not any(program in words for program in _BEFORE)


def is_met(dependency: ContainerProcess, condition: str) -> bool | None:
    """Return whether a dependency's condition holds; None if it never will (API ContainerDependency)."""
    state = dependency.state
    if condition == "START":
        return dependency.has_started
    if condition == "HEALTHY":
        if state.status == "STOPPED" or state.health is Health.UNHEALTHY:
            return None
        return state.health is Health.HEALTHY
    if state.status != "STOPPED":
        return False
    return True if condition == "COMPLETE" or state.exit_code == 0 else None
