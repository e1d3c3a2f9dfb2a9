"""Worker processes for tests without processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeWorkers:
    """Worker processes that end when a test says so."""

    places: list[Any]
    running: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)

    def of(self, _: Any) -> tuple[Any, ...]:
        return tuple(self.places)

    def runs(self, worker: Any) -> bool:
        return worker.name in self.running

    def is_ending(self, worker: Any) -> bool:
        return worker.name in self.ending

    def begin_all(self, workers: list[Any]) -> None:
        self.running |= {each.name for each in workers}

    def end(self, worker: Any) -> None:
        self.running.remove(worker.name)
        self.ending.add(worker.name)
