"""Names of tasks in the VPC: the records of AWS Cloud Map as lines of the tasks' ``/etc/hosts``.

Sources: service-discovery.html (a service with ``serviceRegistries`` registers each task; AWS_INSTANCE_IPV4:
"For an A record, the IPv4 address that Route 53 returns"), API RegisterInstance of AWS Cloud Map. The names
of models, which a private zone of Route 53 leads to the load balancer, are lines too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path


class CloudMapNames:
    """Writes the file at every change.

    file: The file. Tasks read this file itself, so it is never replaced.
    name_of: Returns the DNS name of a Cloud Map service by its ARN.
    others: Returns further lines of the file.
    """

    def __init__(
        self, file: Path, name_of: Callable[[str], str], others: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._file = file
        self._others = others
        self._name_of = name_of
        self._lock = threading.Lock()
        self._records: dict[tuple[str, str], str] = {}

    def register(self, registry: str, task: str, address: str) -> None:
        """Add a task's address to a name."""
        with self._lock:
            self._records[self._name_of(registry), task] = address
            self._write()

    def deregister(self, registry: str, task: str) -> None:
        """Remove a task from a name."""
        with self._lock:
            if self._records.pop((self._name_of(registry), task), None):
                self._write()

    def refresh(self) -> None:
        """Write the file with the further lines as they are now."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        lines = [f"{address} {name}" for (name, _), address in sorted(self._records.items())]
        with self._file.open("r+") as file:
            file.write("\n".join(["127.0.0.1 localhost", *self._others(), *lines, ""]))
            file.truncate()
