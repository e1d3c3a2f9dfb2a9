"""The worker processes of a local run: started, killed, told to end and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Timer

from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.processes.restarts import Restarts
from inference_local.serving.launch import Launch
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.placed_worker import PlacedWorker
from inference_local.serving.worker_process import WorkerProcess


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
