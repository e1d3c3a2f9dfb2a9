"""Which ends of workers count as deaths."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from request_filter import worker_watch
from request_filter.worker_watch import WorkerWatch


@dataclass
class Cluster:
    """Workers by name with their address, those on the list, and what their addresses do."""

    watch: WorkerWatch
    deaths: list[str]
    alive: list[float]
    """When each of them surely lived."""
    addresses: dict[str, str] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)

    def add(self, **workers: str) -> None:
        self.addresses |= workers
        self.listed |= workers.keys()
        self.answers |= dict.fromkeys(workers.values(), "accepts")

    def page(self) -> bytes:
        instances = [
            {"instance_id": name, "endpoint": "generate", "transport": {"tcp": f"{self.addresses[name]}/x"}}
            for name in sorted(self.listed)
        ]
        return json.dumps({"instances": instances}).encode()

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            asyncio.run(self.watch.look())


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    deaths: list[str] = []
    alive: list[float] = []
    clock = iter(range(100_000))

    class Loop:
        def time(self) -> float:
            return next(clock) / 2

    def died(worker: str, since: float, now: float) -> None:
        assert since < now
        deaths.append(worker)
        alive.append(since)

    watch = WorkerWatch(("127.0.0.1", 1), 10.0, died)
    found = Cluster(watch, deaths, alive)

    async def page(*_: object) -> bytes:
        return found.page()

    async def probe(address: tuple[str, int]) -> str:
        return found.answers[f"{address[0]}:{address[1]}"]

    monkeypatch.setattr(worker_watch, "_page", page)
    monkeypatch.setattr(worker_watch, "_probe", probe)
    monkeypatch.setattr(asyncio, "get_running_loop", Loop)
    found.add(a="10.0.0.1:1", b="10.0.0.2:1")
    found.look()
    return found


#: What happens to worker a, and how many deaths that is.
ENDS: Mapping[str, tuple[str, bool, int]] = {
    "dies while it is on the list": ("refuses", True, 1),
    "leaves the list and refuses at once": ("refuses", False, 1),
    "drains": ("accepts", False, 0),
    "its node is lost, and it stays on the list": ("silent", True, 0),
    "its node is lost with its entry": ("silent", False, 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_only_a_program_that_ends_on_a_live_node_has_died(cluster: Cluster, end: str) -> None:
    """Red if a drain, a spot interruption or a lost node makes requests suspects, or a crash does not."""
    answer, stays, deaths = ENDS[end]
    cluster.answers["10.0.0.1:1"] = answer
    if not stays:
        cluster.listed.remove("a")
    cluster.look(20)
    cluster.answers["10.0.0.1:1"] = "refuses" if answer == "accepts" else answer
    cluster.look(3)
    assert cluster.deaths == ["10.0.0.1:1"] * deaths


def test_a_worker_that_was_started_again_at_its_address_had_died(cluster: Cluster) -> None:
    """Red if the container of a dead worker starts faster than anybody looks."""
    cluster.add(c="10.0.0.1:1")
    cluster.look()
    assert not cluster.deaths
    cluster.listed.remove("a")
    cluster.look(30)
    assert cluster.deaths == ["10.0.0.1:1"]


def test_a_process_with_several_workers_dies_once(cluster: Cluster) -> None:
    """Red if one death of a process counts as two, and its requests are refused after the first."""
    cluster.add(c="10.0.0.1:1")
    cluster.look()
    cluster.answers["10.0.0.1:1"] = "refuses"
    cluster.look(3)
    assert cluster.deaths == ["10.0.0.1:1"]


def test_a_worker_that_was_new_when_it_died_may_have_died_of_an_earlier_request(cluster: Cluster) -> None:
    """Red if a worker that dies before anybody looked counts as alive until then: its request had failed."""
    cluster.look()
    failed = asyncio.get_running_loop().time()
    cluster.add(c="10.0.0.3:1")
    cluster.answers["10.0.0.3:1"] = "refuses"
    cluster.look()
    assert cluster.deaths == ["10.0.0.3:1"]
    assert cluster.alive[0] < failed


def test_a_worker_that_still_accepts_may_have_begun_to_end(cluster: Cluster) -> None:
    """Red if a request counts as not concerned that failed when its worker had closed all but its port."""
    failed = asyncio.get_running_loop().time()
    cluster.look()
    cluster.answers["10.0.0.1:1"] = "refuses"
    cluster.look()
    assert cluster.deaths == ["10.0.0.1:1"]
    assert cluster.alive[0] <= failed
