"""The worker processes of a local run: started, killed, told to end and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from threading import Timer

from inference_blueprints.serving.types import Role
from inference_local.processes.child_processes import ProcessGroup, Restarts, RunningProcess
from inference_local.processes.free_ports import first_free_port
from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers, WorkerPlace
from inference_local.serving.local_endpoint import ServedProcess
from inference_local.serving.process_commands import Launch
from inference_local.serving.ready_workers import leaving_folder
from inference_local.serving.relay import Route

# One worker process of a role.


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """Workers that share a process on this machine."""

    deployment: LocalDeployment
    kind: LocalWorkers
    """The workers of their role."""
    index: int
    """Index of the process within its role, from 0."""

    @property
    def name(self) -> str:
        """The name of the process."""
        return f"{self.kind.name} {self.index + 1} of {self.deployment.plan.release}"

    @property
    def role(self) -> Role:
        """Role of the workers."""
        return self.kind.role

    @property
    def workers(self) -> int:
        """Number of workers in this process."""
        return self.kind.by_process[self.index]

    @property
    def is_first(self) -> bool:
        """Whether the platform starts with this process. Others start when load rises."""
        return sum(self.kind.by_process[: self.index]) < self.kind.replicas

    @property
    def workers_of_role(self) -> int:
        """Number of workers in all processes of the role."""
        return self.kind.replicas


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


class RunningWorkers:
    """The worker processes of a run.

    processes: The group that they join.
    start: Starts a process with a name.
    """

    def __init__(self, processes: ProcessGroup, start: Callable[[str, Launch], RunningProcess]) -> None:
        self._processes = processes
        self._start = start
        self._placed: Mapping[str, PlacedWorker] = {}
        self._running: dict[str, RunningProcess] = {}
        self._ending: dict[str, RunningProcess] = {}
        self._killed: list[WorkerProcess] = []
        self._timers: list[Timer] = []

    def place(self, placed: Mapping[str, PlacedWorker]) -> None:
        """Take over the places of all workers, by name."""
        self._placed = placed

    @property
    def placed(self) -> Mapping[str, PlacedWorker]:
        """The places of all workers, by name, whether they run or not."""
        return self._placed

    @property
    def killed(self) -> tuple[WorkerProcess, ...]:
        """Workers that `kill` has ended and nothing has started again."""
        return tuple(self._killed)

    def of(self, deployment: LocalDeployment) -> tuple[WorkerProcess, ...]:
        """Return the worker processes of a deployment, whether they run or not, in order.

        deployment: A deployment of the run.
        """
        places = (each.worker for each in self._placed.values())
        return tuple(each for each in places if each.deployment is deployment)

    def runs(self, worker: WorkerProcess) -> bool:
        """Return whether a worker is started, and neither killed nor told to end."""
        return worker.name in self._running

    def is_ending(self, worker: WorkerProcess) -> bool:
        """Return whether a worker was told to end and has not ended."""
        process = self._ending.get(worker.name)
        return process is not None and process.popen.poll() is None

    def begin(self, worker: WorkerProcess, further: Sequence[str] = ()) -> None:
        """Start a worker that does not run.

        worker: A worker with a place.
        further: Further arguments of its command.
        """
        self._placed[worker.name].leaving.unlink(missing_ok=True)
        launch = self._placed[worker.name].launch
        if further:
            launch = Launch([*launch.command, *further], launch.environment)
        self._running[worker.name] = self._start(worker.name, launch)
        self._killed = [each for each in self._killed if each.name != worker.name]

    def kill(self, worker: WorkerProcess) -> None:
        """Kill a running worker with SIGKILL."""
        self._processes.kill(self._running.pop(worker.name))
        self._killed.append(worker)

    def end(self, worker: WorkerProcess) -> None:
        """Tell a running worker to end, with SIGTERM. It serves its streams before it ends.

        One whose server ends at once leaves the load balancer first, and gets the signal later, as a pod does
        after its preStop action.
        """
        process = self._running.pop(worker.name)
        self._ending[worker.name] = process
        seconds = worker.kind.seconds_before_sigterm
        if not seconds:
            self._processes.end(process)
            return
        mark = self._placed[worker.name].leaving
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        timer = Timer(seconds, self._processes.end, (process,))
        self._timers.append(timer)
        timer.start()

    def cancel_signals(self) -> None:
        """Send no SIGTERM any more to workers that wait for it. The process group ends them."""
        for timer in self._timers:
            timer.cancel()
            timer.join()

    def restart_ended(self, restarts: Restarts) -> None:
        """Start workers again that have ended without being told to.

        restarts: Counts the restarts of each process.
        """
        restarts.restart_ended(
            [
                (process, partial(self.begin, self._placed[name].worker))
                for name, process in self._running.items()
            ]
        )

    def begin_all(self, workers: Iterable[WorkerProcess]) -> None:
        """Start workers that do not run."""
        for worker in workers:
            self.begin(worker)
