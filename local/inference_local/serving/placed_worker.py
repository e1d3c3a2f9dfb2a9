"""Worker processes with the loopback addresses where they run, and the way to their health and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from inference_local.processes.free_ports import first_free_port
from inference_local.serving.launch import Launch
from inference_local.serving.local_deployment import LocalDeployment, WorkerPlace
from inference_local.serving.ready_workers import leaving_folder
from inference_local.serving.relay import Route
from inference_local.serving.served_process import ServedProcess
from inference_local.serving.worker_process import WorkerProcess

#: The first address of a worker; 127.0.0.1 is that of the frontends and the relay.
_FIRST_ADDRESS = IPv4Address("127.0.0.2")
#: Dynamo's port for health and metrics, at the address of each worker in a namespace.
_PAGES_PORT = 9090
_METRICS = "/metrics"


@dataclass(frozen=True, slots=True)
class PlacedWorker:
    """A worker process and where it runs."""

    worker: WorkerProcess
    place: WorkerPlace

    @property
    def launch(self) -> Launch:
        """How to start it."""
        return self.worker.kind.launch(self.worker.deployment.model.name, self.place, self.worker.workers)

    @property
    def sidecars(self) -> dict[str, Launch]:
        """How to start what runs beside it, by name."""
        beside = self.worker.kind.sidecars(self.place)
        return {f"{name} of {self.worker.name}": launch for name, launch in beside.items()}

    @property
    def leaving(self) -> Path:
        """The file that tells the load balancer to send it nothing more."""
        return leaving_folder(self.place.home) / self.place.address

    @property
    def api(self) -> str:
        """Host and port at which it, or its sidecar, takes requests."""
        return self.worker.kind.api(self.place)

    def pages(self, mark: str) -> Route:
        """Return the route to its health and its metrics, and to nothing else of it.

        mark: Kind of its engine, for the header of responses.
        """
        port, health = self.worker.kind.pages_at(self.place)
        return Route(
            ((port, 1.0),),
            self.worker.deployment.answer_tokens,
            engines=mark,
            address=self.place.address,
            pages=(health, _METRICS),
        )

    def served(self, url: str, log_file: Path) -> ServedProcess:
        """Describe it for other commands.

        url: URL of its pages.
        log_file: File with its output.
        """
        _, health = self.worker.kind.pages_at(self.place)
        release = self.worker.deployment.plan.release
        return ServedProcess(self.worker.name, release, self.worker.kind.name, url, health, str(log_file))


def place_workers(
    deployments: Iterable[LocalDeployment], home: Callable[[LocalDeployment], Path], *, isolated: bool
) -> dict[str, PlacedWorker]:
    """Give each worker process an address, and return them by name.

    home: Returns the folder of a deployment.
    isolated: Whether they have a network namespace. Without one, ports of their pages may be in use.
    """
    workers = [
        WorkerProcess(deployment, role, index)
        for deployment in deployments
        for role in deployment.workers
        for index in range(len(role.by_process))
    ]
    placed: dict[str, PlacedWorker] = {}
    for number, worker in enumerate(workers):
        address = str(_FIRST_ADDRESS + number)
        # Dynamo reads the port as a signed number of 16 bits, so the operating system cannot choose it.
        port = _PAGES_PORT if isolated else first_free_port(address, _PAGES_PORT)
        placed[worker.name] = PlacedWorker(worker, WorkerPlace(home(worker.deployment), address, port))
    return placed
