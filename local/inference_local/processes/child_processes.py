"""Starts local processes and ends all of them, also if this program is killed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from inference_local.processes import orphan_killer, parent_bound

_PR_SET_CHILD_SUBREAPER = 36
_MEMBER_VARIABLE = "INFERENCE_BLUEPRINTS_PROCESS_GROUP"
_TAIL_LINES = 20
_KILL_TIMEOUT_SECONDS = 10.0


def log_tail(log_path: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log file, or nothing if it does not exist.

    lines: Maximum number of lines.
    """
    if not log_path.is_file():
        return ""
    return "\n".join(log_path.read_text(errors="replace").rstrip().splitlines()[-lines:])


def ending_words(exit_code: int) -> str:
    """Return how a process ended. A negative exit code is the signal that ended it."""
    return f"was killed by signal {-exit_code}" if exit_code < 0 else f"exited with code {exit_code}"


class ProcessDied(Exception):  # noqa: N818 - the name says what happened
    """A process that should run has exited.

    name: The name that the process was started under.
    exit_code: Its exit code. A negative number is the signal that ended it.
    log_path: File with its output.
    """

    def __init__(self, name: str, exit_code: int, log_path: Path) -> None:
        self.name = name
        self.exit_code = exit_code
        self.log_path = log_path
        self.tail = log_tail(log_path)
        ending = ending_words(exit_code)
        last_words = self.tail.rstrip().rpartition("\n")[2]
        #: What happened, on one line.
        self.line = f"{name} {ending}; its output is in {log_path}" + (last_words and f": {last_words}")
        super().__init__(f"{name} {ending}; its output is in {log_path}:\n{self.tail}".rstrip(":\n"))


@contextmanager
def ended_with_this(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process and its children if the block ends with an exception, such as that of a signal.

    process: It leads its own session. A plain wait would last until a compiler has finished.
    """
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


@dataclass(frozen=True)
class RunningProcess:
    """A started process."""

    name: str
    popen: subprocess.Popen[bytes]
    """The process. It leads its own session."""
    log_path: Path
    """File with standard output and standard error."""

    @property
    def pid(self) -> int:
        """The process id. Its session and process group have the same id."""
        return self.popen.pid


class ProcessGroup:
    """A set of processes that start and end together. Use it as a context manager.

    Each process leads its own session and is killed by the kernel when this program dies, even by SIGKILL.
    `stop` also kills the orphans that the processes leave: this program adopts orphans (prctl(2),
    PR_SET_CHILD_SUBREAPER), and members are identified by their session and by a variable in their
    environment. If this program is killed by SIGKILL, `orphan_killer` kills what its children have started.

    grace_seconds: Time between SIGTERM and SIGKILL at `stop`.
    """

    def __init__(self, *, grace_seconds: float = 5.0) -> None:
        self._grace_seconds = grace_seconds
        self._identifier = uuid.uuid4().hex
        self._processes: list[RunningProcess] = []
        self._ending: list[RunningProcess] = []
        # The death signal follows the thread that forked, so one thread forks and lives until `stop`.
        self._forker: ThreadPoolExecutor | None = None
        self._orphan_killer: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._orphan_killer = subprocess.Popen(
            [sys.executable, "-I", "-S", orphan_killer.__file__, _MEMBER_VARIABLE, self._identifier],
            env={},  # a group around this program does not end it
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._forker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-starter")
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def processes(self) -> tuple[RunningProcess, ...]:
        """Every process started so far, in order."""
        return tuple(self._processes)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        pass_fds: Sequence[int] = (),
        working_directory: Path | None = None,
    ) -> RunningProcess:
        """Start a process; its output goes to a log file.

        environment: The complete environment. Nothing is inherited from this program.
        log_path: File that standard output and standard error are appended to. Its folder is created.
        pass_fds: File descriptors that stay open in the process.
        working_directory: Its working directory. By default, that of this program.
        Raises RuntimeError outside the ``with`` block of this group.
        """
        if self._forker is None:
            raise RuntimeError(f"cannot start {name}: the process group is not open")
        log_path.parent.mkdir(parents=True, exist_ok=True)
        launcher = [sys.executable, "-I", "-S", parent_bound.__file__, str(os.getpid())]
        with log_path.open("ab") as log:
            popen = self._forker.submit(
                subprocess.Popen,
                [*launcher, *(str(part) for part in command)],
                env={**environment, _MEMBER_VARIABLE: self._identifier},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(pass_fds),
                cwd=working_directory,
                start_new_session=True,
            ).result()
        process = RunningProcess(name, popen, log_path)
        self._processes.append(process)
        return process

    def kill(self, process: RunningProcess) -> None:
        """Kill a process and its session with SIGKILL. It may have ended already."""
        os.killpg(process.pid, signal.SIGKILL)
        process.popen.wait()
        self._processes.remove(process)

    def end(self, process: RunningProcess) -> None:
        """Tell a process to end, with SIGTERM. `check` does not miss it; `stop` kills it if it still runs."""
        self._processes.remove(process)
        self._ending.append(process)
        process.popen.terminate()

    def forget(self, process: RunningProcess) -> None:
        """Remove a process that has ended, and kill what is left of its session.

        process: A process of this group. `check` no longer reports it.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self._processes.remove(process)

    def check(self) -> None:
        """Make sure that every process still runs.

        Raises ProcessDied if one has exited, with its exit code and last log lines.
        """
        for process in self._processes:
            exit_code = process.popen.poll()
            if exit_code is not None:
                raise ProcessDied(process.name, exit_code, process.log_path)

    def stop(self) -> None:
        """End every process and its descendants: SIGTERM, a grace period, then SIGKILL until none is left."""
        members = self._members()
        self._processes += self._ending
        self._ending.clear()
        for process in self._processes:
            if process.popen.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        psutil.wait_procs(members, timeout=self._grace_seconds)
        deadline = time.monotonic() + _KILL_TIMEOUT_SECONDS
        while members := {member for member in members | self._members() if member.is_running()}:
            if time.monotonic() > deadline:
                left = ", ".join(str(member.pid) for member in members)
                raise RuntimeError(f"processes {left} survived SIGKILL")
            for member in members:
                _kill(member)
            psutil.wait_procs(members, timeout=1)
        for process in self._processes:
            process.popen.wait()
        self._processes.clear()
        if self._forker is not None:
            self._forker.shutdown()
            self._forker = None
        if self._orphan_killer is not None:
            with contextlib.suppress(BrokenPipeError):  # it was killed
                self._orphan_killer.communicate(orphan_killer.DONE)
            self._orphan_killer = None

    def _members(self) -> set[psutil.Process]:
        """Return the started processes and all their descendants, including orphans."""
        sessions = {process.pid for process in (*self._processes, *self._ending)}
        members: set[psutil.Process] = set()
        for candidate in psutil.Process().children(recursive=True):
            if _session(candidate) in sessions or _has_variable(candidate, self._identifier):
                members.add(candidate)
                members.update(_descendants(candidate))
        return members


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def _has_variable(process: psutil.Process, identifier: str) -> bool:
    try:
        return process.environ().get(_MEMBER_VARIABLE) == identifier
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process) -> None:
    """Kill a process, which may have ended already."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


# The base class of programs that start and end together: the emulator, the control plane, a platform.


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


# Starts processes again that have ended, as a cluster does with containers, but not for ever.

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
