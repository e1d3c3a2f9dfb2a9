"""Stand-in for Karpenter, the kubelets and Dynamo's operator: nodes with one worker process each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inference_local.scaling.operator_stand_in import ElasticRole
from inference_local.serving.running_workers import RunningWorkers, WorkerProcess

#: Asks a worker process whether it is ready.
Probe = Callable[[WorkerProcess], bool]


@dataclass(slots=True)
class WorkerNode:
    """A node with its pod."""

    number: int
    """Number of the node since the beginning of the run."""
    place: WorkerProcess
    """The worker process of its pod."""
    due: float
    """Second of the run at which the node joins and the pod's process starts."""
    joined_at: float | None = None
    ready_at: float | None = None
    """`joined_at`, `ready_at`: When that happened, and since when the pod is ready, in real seconds since the
    epoch. None before."""
    has_pod: bool = True
    """Whether the pod exists. It goes when its process has ended."""
    leaving: bool = False
    """Whether the pod was told to end."""
    evicted: bool = False
    """Whether the eviction of the pod was asked for."""
    cordoned: bool = False
    """Whether no other pod may come to it."""
    mark: str = ""
    """Annotation of GPU health. Empty without."""
    claim_deleted: bool = False
    """Whether its NodeClaim was deleted."""
    slower: float = 1.0
    """How much faster the process is than it should be; below 1, it is slower."""
    restarting: bool = False
    """Whether the process ends only to be started again, slower."""

    @property
    def serves(self) -> bool:
        """Whether its process runs and is not told to end."""
        return self.joined_at is not None and self.has_pod and not self.leaving


class WorkerNodes:
    """The nodes and pods of one elastic role, with the methods of `OperatorStandIn`.

    A worker that is wanted gets a node, which joins after the time of a cold start. One that is not wanted
    any more goes: those that still start first, then the youngest. A pod that is evicted goes too, and
    another one comes. A node without a pod goes, unless it is cordoned; then it stays until its NodeClaim is
    deleted. Requests of the API server only note what is asked for: `step` carries it out.

    workers: The worker processes of the run.
    probe: Asks a process whether it is ready.
    ready_since: Since when the first workers are ready, in real seconds since the epoch: long before the run.
    """

    def __init__(self, workers: RunningWorkers, role: ElasticRole, probe: Probe, ready_since: float) -> None:
        self.lock = threading.RLock()
        self.role = role
        self._workers, self._probe = workers, probe
        self._places = [each for each in workers.of(role.deployment) if each.kind is role.workers]
        running = [each for each in self._places if workers.runs(each)]
        self._nodes = [
            WorkerNode(number, place, 0.0, joined_at=ready_since, ready_at=ready_since)
            for number, place in enumerate(running, 1)
        ]
        self._count = len(running)
        self.wanted = len(running)

    def __iter__(self) -> Iterator[WorkerNode]:
        """Iterate over the nodes that have joined."""
        return iter([each for each in self._nodes if each.joined_at is not None])

    @property
    def serving(self) -> int:
        """Workers whose process runs and is not told to end."""
        return sum(each.serves for each in self._nodes)

    @property
    def ready(self) -> int:
        """Workers that are ready."""
        return sum(each.serves and each.ready_at is not None for each in self._nodes)

    @property
    def occupying(self) -> int:
        """Nodes that exist or start."""
        return len(self._nodes)

    def name(self, node: WorkerNode) -> str:
        """Return the name of a node."""
        return f"{self.role.workers.planned.pool}-node-{node.number}"

    def pod_name(self, node: WorkerNode) -> str:
        """Return the name of the pod of a node."""
        return f"{self.role.name}-{node.number}"

    def slow_down(self, ratio: float) -> WorkerNode:
        """Make the oldest worker slower: its process is started again with another speed.

        To Kubernetes it stays the same pod.

        ratio: Its speed, as a share of that of the others.
        """
        with self.lock:
            victim = next(each for each in self._nodes if each.serves and each.ready_at is not None)
            victim.slower, victim.restarting = ratio, True
            self._workers.end(victim.place)
            return victim

    def step(self, now_seconds: float, wanted: int) -> None:
        """Carry out what was asked for, and bring the number of workers nearer to the wanted one.

        now_seconds: Seconds of the run.
        wanted: Number of workers.
        """
        with self.lock:
            self.wanted = wanted
            self._join(now_seconds)
            self._leave()
            self._scale(now_seconds, wanted)
            for node in self._nodes:
                if node.serves and not node.restarting and node.ready_at is None and self._probe(node.place):
                    node.ready_at = time.time()

    def _join(self, now_seconds: float) -> None:
        for node in self._nodes:
            if node.joined_at is None and node.due <= now_seconds:
                self._workers.begin(node.place)
                node.joined_at = time.time()
            if node.restarting and not self._workers.is_ending(node.place):
                self._workers.begin(node.place, ("--speedup-ratio", f"{node.slower:g}"))
                node.restarting = False

    def _leave(self) -> None:
        for node in self._nodes:
            if (node.evicted or node.claim_deleted) and node.serves and not node.restarting:
                self._end(node)
            if node.leaving and node.has_pod and not self._workers.is_ending(node.place):
                node.has_pod = False
        self._nodes = [
            each for each in self._nodes if each.has_pod or (each.cordoned and not each.claim_deleted)
        ]

    def _scale(self, now_seconds: float, wanted: int) -> None:
        coming = [each for each in self._nodes if each.joined_at is None]
        serving = [each for each in self._nodes if each.serves and not each.restarting]
        restarting = sum(each.restarting for each in self._nodes)
        while coming and len(coming) + len(serving) + restarting > wanted:
            self._nodes.remove(coming.pop())
        while serving and len(coming) + len(serving) + restarting > wanted:
            self._end(serving.pop())
        taken = {each.place.name for each in self._nodes if each.has_pod}
        free = [each for each in self._places if each.name not in taken]
        for place in free[: max(0, wanted - len(coming) - len(serving) - restarting)]:
            self._count += 1
            self._nodes.append(WorkerNode(self._count, place, now_seconds + self.role.start_seconds))

    def _end(self, node: WorkerNode) -> None:
        self._workers.end(node.place)
        node.leaving = True
