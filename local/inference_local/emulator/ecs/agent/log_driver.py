"""The log driver ``awslogs``: sends what containers write to CloudWatch Logs, a line as an event.

Source: Amazon ECS Developer Guide, using_awslogs.html: the group is ``awslogs-group``, the stream
``awslogs-stream-prefix/container/task-id``. Lines are also in the log file of the container.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inference_local.emulator.ecs.control.cluster_state import Shape

_LOOK_SECONDS: Final = 0.5

#: Sends lines to a stream of a group.
SendLines = Callable[[str, str, list[str]], None]


@dataclass
class _FollowedFile:
    path: Path
    group: str
    stream: str
    offset: int = 0

    def lines(self) -> list[str]:
        """Return the whole lines that are new."""
        if not self.path.exists() or self.path.stat().st_size <= self.offset:
            return []
        with self.path.open("rb") as file:
            file.seek(self.offset)
            whole = file.read().rpartition(b"\n")[0]
        self.offset += len(whole) + 1 if whole else 0
        return [line for line in whole.decode(errors="replace").splitlines() if line]


class LogDriver:
    """Follows log files in a thread.

    send: Called from the thread.
    """

    def __init__(self, send: SendLines) -> None:
        self._send = send
        self._files: dict[Path, _FollowedFile] = {}
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="awslogs", daemon=True)
        self._thread.start()

    def follow(self, path: Path, container: Shape, task: str) -> None:
        """Send a container's lines from now on, if its driver is ``awslogs``."""
        log = container.get("logConfiguration") or {}
        if log.get("logDriver") != "awslogs":
            return
        options = log["options"]
        parts = options.get("awslogs-stream-prefix", ""), container["name"], task
        with self._lock:
            self._files[path] = _FollowedFile(path, options["awslogs-group"], "/".join(parts))

    def forget(self, task: str) -> None:
        """Send what the containers of a task wrote, and follow them no more."""
        with self._lock:
            mine = [each for each in self._files.values() if each.stream.endswith(f"/{task}")]
            for each in mine:
                del self._files[each.path]
            self._send_new(mine)

    def close(self) -> None:
        """End the thread."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(_LOOK_SECONDS):
            with self._lock:
                self._send_new(self._files.values())

    def _send_new(self, files: Iterable[_FollowedFile]) -> None:
        """Send what is new. The lock is held, so that no line is sent twice."""
        for each in files:
            if lines := each.lines():
                self._send(each.group, each.stream, lines)
