"""Nodes with workers for tests without processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from inference_local.controllers.worker_nodes import WorkerNodes
from inference_local.scaling.operator_stand_in import ElasticRole
from tests.unit.local.scaling.fake_workers import FakeWorkers

START_SECONDS = 10.0
READY_SINCE = 500.0


@dataclass
class ArguedWorkers(FakeWorkers):
    """Worker processes, and the further arguments with which they were started."""

    arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def begin(self, worker: Any, further: Sequence[str] = ()) -> None:
        assert worker.name not in self.running
        assert worker.name not in self.ending
        self.running.add(worker.name)
        self.arguments[worker.name] = tuple(further)

    def ended(self) -> None:
        """Let all processes end that were told to."""
        self.ending.clear()


def nodes_of(running: int, places: int = 4, *, ready: bool = True) -> tuple[WorkerNodes, ArguedWorkers]:
    accelerators = SimpleNamespace(accelerators=SimpleNamespace(count=1))
    planned = SimpleNamespace(pool="l40s", resources=accelerators, nodes=1, maximum=places)
    kind = SimpleNamespace(name="worker", role="worker", planned=planned)
    workers = ArguedWorkers([SimpleNamespace(name=str(index), kind=kind) for index in range(places)])
    workers.running = {str(index) for index in range(running)}
    deployment = SimpleNamespace(plan=SimpleNamespace(release="chat"), model=SimpleNamespace(name="qwen"))
    role = ElasticRole(cast(Any, deployment), cast(Any, kind), START_SECONDS)
    return WorkerNodes(cast(Any, workers), role, lambda _: ready, READY_SINCE), workers


def names(nodes: WorkerNodes) -> list[str]:
    return [nodes.name(each) for each in nodes]
