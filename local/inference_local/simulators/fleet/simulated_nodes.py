"""Nodes of a simulated fleet, which answer the acts of a repair in process."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy

from inference_catalog.gpu_faults import FleetFaults
from inference_decisions.repairs.live_node import DcgmReading, LiveNode, Verification
from inference_decisions.repairs.repair_case import RepairCase
from inference_decisions.repairs.worker_windows import Labels, Numbers
from inference_local.simulators.fleet.fleet_layout import NODE_GPUS, FleetLayout
from inference_local.simulators.fleet.fleet_metrics import FleetMetrics

#: How long the deletion of a NodeClaim takes once its node is empty, in seconds.
_TERMINATION_SECONDS = 30.0


@dataclass(slots=True)
class _Absence:
    """A node that is on its way out, or not yet back."""

    drained_at: float
    gone_at: float = float("inf")
    serves_at: float = float("inf")


@dataclass(slots=True)
class SimulatedNodes:
    """The nodes. It has the methods of `RepairActions`."""

    layout: FleetLayout
    metrics: FleetMetrics
    """Its workers, which fall silent and come back with the nodes."""
    figures: FleetFaults
    """How long the steps of a replacement take."""
    random: numpy.random.Generator
    """Source of chance."""
    places: int = 1
    """Most nodes of a pool that are replaced at the same time."""
    now: float = 0.0
    """Time, in seconds since the start. The simulation sets it."""
    slower: Numbers = field(default_factory=lambda: numpy.zeros(0))
    peers: Labels = field(default_factory=lambda: numpy.zeros(0))
    missing_gpus: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    _generation: dict[int, int] = field(default_factory=dict)
    _absent: dict[int, _Absence] = field(default_factory=dict)
    _cordoned: set[int] = field(default_factory=set)
    _held: dict[str, set[str]] = field(default_factory=dict)

    def name(self, node: int) -> str:
        """Return the name of the machine that is now in a node's place."""
        return f"node-{node}-{self._generation.get(node, 0)}"

    def settle(self, now: float) -> list[int]:
        """Let time pass, and return the nodes whose replacement serves since then."""
        self.now = now
        back = [node for node, absence in self._absent.items() if absence.serves_at <= now]
        for node in back:
            self._generation[node] = self._generation.get(node, 0) + 1
            self.metrics.restart(node, self._absent.pop(node).serves_at)
            self._cordoned.discard(node)
            self.missing_gpus.discard(node)
            self.broken.discard(node)
        return back

    def read_live(self, node: str) -> LiveNode | None:
        """Return a node as it is now."""
        number, generation = self._parsed(node)
        absence = self._absent.get(number)
        if generation != self._generation.get(number, 0) or (absence and absence.gone_at <= self.now):
            return None
        workers = self.layout.workers_of(number)
        pods = 0 if absence and absence.drained_at <= self.now else len(workers)
        gpus = NODE_GPUS - (number in self.missing_gpus)
        figures = self.slower[workers] if len(self.slower) else numpy.zeros(0)
        known = figures[numpy.isfinite(figures)]
        return LiveNode(
            name=node,
            uid=node,
            pool=str(self.layout.pool[number]),
            rack=str(self.layout.rack[number]),
            read_at=self.now,
            booted_at=-86400.0,
            ready=True,
            cordoned=number in self._cordoned,
            cordoned_by_us=number in self._cordoned,
            owner="node_claim",
            owner_name=f"claim-{node}",
            instance=f"i-{number}",
            purchase="on_demand",
            spare=True,
            gpus_expected=NODE_GPUS,
            gpus_allocatable=gpus,
            dcgm=DcgmReading(at=self.now, gpus=gpus),
            slower=float(max(known)) if len(known) else None,
            peers=frozenset(map(str, self.peers[workers])) if len(self.peers) else frozenset(),
            serving_pods=pods,
        )

    def reserve(self, case: RepairCase) -> bool:
        """Take a place of the pool."""
        held = self._held.setdefault(case.pool, set())
        if case.node not in held and len(held) >= self.places:
            return False
        held.add(case.node)
        return True

    def release(self, case: RepairCase) -> None:
        """Give a place of the pool back."""
        self._held.get(case.pool, set()).discard(case.node)

    def cordon(self, case: RepairCase) -> None:
        """Close a node."""
        self._cordoned.add(self._parsed(case.node)[0])

    def uncordon(self, case: RepairCase) -> None:
        """Open a node; pods that were moved away come back."""
        number, _ = self._parsed(case.node)
        self._cordoned.discard(number)
        if self._absent.pop(number, None) is not None:
            self.metrics.restart(number, self.now)

    def drain(self, case: RepairCase) -> None:
        """Start to move pods away."""
        number, _ = self._parsed(case.node)
        if number not in self._absent:
            self._absent[number] = _Absence(self.now + self._drawn("drain_seconds"))
            self.metrics.stop(number, self._absent[number].drained_at)

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Ask for another node, if it is still the same."""
        if live.uid != case.node_uid:
            return
        absence = self._absent.setdefault(self._parsed(case.node)[0], _Absence(self.now))
        if absence.gone_at == float("inf"):
            absence.gone_at = self.now + _TERMINATION_SECONDS
            # Karpenter launches the replacement as soon as the pods are pending, which is at the drain.
            ready = max(absence.gone_at, absence.drained_at + self._drawn("launch_seconds"))
            absence.serves_at = ready + self._drawn("start_seconds")

    def verify(self, case: RepairCase) -> Verification:
        """Return whether a replacement serves."""
        number, generation = self._parsed(case.node)
        back = self._generation.get(number, 0) > generation
        return Verification(back, self.name(number) if back else "")

    def notify(self, case: RepairCase, text: str) -> None:
        """Note what people are told."""
        self.notes.append(f"{case.node}: {text}")

    def _drawn(self, name: str) -> float:
        """Return a duration: lognormal around its mean, with a spread of 30 %."""
        spread = 0.3
        return self.figures.repair[name] * float(
            numpy.exp(self.random.normal(0, spread) - spread * spread / 2)
        )

    @staticmethod
    def _parsed(name: str) -> tuple[int, int]:
        _, number, generation = name.split("-")
        return int(number), int(generation)
