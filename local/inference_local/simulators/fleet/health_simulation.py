"""GPU health at work on a simulated fleet: the decisions of the Lambda functions, minute by minute."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy

from inference_catalog.gpu_faults import FleetFaults
from inference_contracts.health_names import CASES_IN_FLIGHT, FaultKind
from inference_decisions.repairs.fault_rules import FaultRules, HardwareSignal
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.peer_comparison import PeerComparison, compare, join_comparisons
from inference_decisions.repairs.repair_case import Evidence, RepairCase, opened_case
from inference_decisions.repairs.repair_guards import FleetView, has_same_cause
from inference_decisions.repairs.repair_progress import advance
from inference_decisions.repairs.slow_workers import Verdicts, judge
from inference_local.simulators.fleet.fleet_events import FleetEvents, GreyFailure, HardwareFault
from inference_local.simulators.fleet.fleet_layout import FleetLayout
from inference_local.simulators.fleet.simulated_nodes import FleetMetrics, SimulatedNodes

_MINUTE = 60.0
#: How long after its end a failure still explains a drain: the windows that showed it.
_EXPLAINED_SECONDS = 240.0
#: How many minutes a shift is remembered: workers of one rack do not cross a limit in the same minute.
_SHIFT_MINUTES = 5


@dataclass(slots=True)
class FoundFault:
    """What became of one fault. Times are seconds since the start, and None if it did not happen."""

    fault: GreyFailure | HardwareFault
    node: int
    found_at: float | None = None
    serving_at: float | None = None


@dataclass(frozen=True, slots=True)
class FalseDrain:
    """A healthy node that was cordoned."""

    node: int
    at: float
    evidence: tuple[Evidence, ...]


@dataclass(slots=True)
class FleetRun:
    """What happened in a simulated time."""

    faults: list[FoundFault] = field(default_factory=list)
    """Faults that were injected, and what became of them."""
    drains: int = 0
    """Nodes that were cordoned."""
    false_drains: list[FalseDrain] = field(default_factory=list)
    """Those of them that were healthy."""
    shifts: dict[tuple[str, str], int] = field(default_factory=dict)
    """Units that moved together, each with the first minute."""
    event_seconds: list[float] = field(default_factory=list)
    """Processor time of each decision about a hardware signal."""
    minute_seconds: list[float] = field(default_factory=list)
    """Processor time of each minute's comparison."""
    notes: list[str] = field(default_factory=list)


class HealthSimulation:
    """A fleet, what happens to it, and its GPU health.

    events: What happens to it.
    settings: Settings of GPU health.
    rules: What hardware signals mean.
    figures: Rates, delays and noise.
    seed: Seed of chance.
    reboot_seconds: How long a reboot takes.
    """

    def __init__(
        self,
        layout: FleetLayout,
        events: FleetEvents,
        *,
        settings: HealthSettings,
        rules: FaultRules,
        figures: FleetFaults,
        seed: int,
        reboot_seconds: float = 0.0,
    ) -> None:
        self._layout, self._rules, self._figures = layout, rules, figures
        self._settings = replace(settings, faults=rules)
        self._random = numpy.random.default_rng(seed)
        self._metrics = FleetMetrics(layout, events, figures, self._random)
        self._nodes = SimulatedNodes(layout, self._metrics, figures, self._random, reboot_seconds)
        self._signals = deque(sorted(self._delivered(events.hardware), key=lambda each: each[0]))
        self._cases = dict[str, RepairCase]()
        self._started = deque[tuple[float, int]]()
        self._shifted = dict[tuple[str, str], int]()
        self._comparisons = deque[PeerComparison](maxlen=settings.detection.windows)
        self._pool_nodes = numpy.bincount(layout.pool)
        self._metrics_at = 0.0
        self.run_so_far = FleetRun()
        self._open = dict[int, list[FoundFault]]()
        for fault in events.grey:
            self._note(FoundFault(fault, int(layout.node[fault.worker])))
        for signal in events.hardware:
            if signal.broken:
                self._note(FoundFault(signal, signal.node))

    def run(self, minutes: int) -> FleetRun:
        """Let minutes pass, and return what happened.

        minutes: Number of minutes.
        """
        delays = self._figures.delays
        pending = self._metrics.windows_of_nothing
        for minute in range(minutes):
            now = (minute + 1) * _MINUTE + delays["window_lag_seconds"] + delays["invocation_seconds"]
            self._hardware(until=now)
            self._served(now)
            reported = self._metrics.minute(minute)
            started = time.process_time()
            detection = self._settings.detection
            if self._comparisons:
                self._comparisons[-1] = compare(replace(pending, age=pending.age), detection)
            self._comparisons.append(compare(reported.at_once, detection))
            comparison = join_comparisons(self._comparisons)
            verdicts = judge(reported.at_once, comparison, detection)
            self._nodes.peers = reported.at_once.peers
            self._judged(verdicts, comparison, minute, now)
            self._advance_all(now)
            self.run_so_far.minute_seconds.append(time.process_time() - started)
            pending = reported.later
        self.run_so_far.notes = self._nodes.notes
        return self.run_so_far

    def _note(self, fault: FoundFault) -> None:
        self.run_so_far.faults.append(fault)
        self._open.setdefault(fault.node, []).append(fault)

    def _delivered(self, faults: tuple[HardwareFault, ...]) -> Iterator[tuple[float, HardwareFault]]:
        delay = self._figures.delays["hardware_signal_seconds"]
        for fault in faults:
            yield fault.at + float(self._random.uniform(0, delay)), fault

    def _hardware(self, until: float) -> None:
        """Handle the signals that arrived, one by one, each at its time."""
        while self._signals and self._signals[0][0] <= until:
            at, fault = self._signals.popleft()
            self._served(at)
            name = self._nodes.name(fault.node)
            if self._nodes.read_live(name) is None:
                continue
            if fault.broken:
                self._nodes.broken.add(fault.node)
                self._metrics.stop(fault.node, fault.at)
            if fault.kind == "gpus_missing":
                self._nodes.missing_gpus.add(fault.node)
            started = time.process_time()
            signal = HardwareSignal(
                kind=fault.kind, code=fault.code, node=name, at=fault.at, source="kernel-log"
            )
            evidence = self._rules.evidence(signal)
            if evidence is not None:
                self._add(fault.node, evidence)
                self._advance(name, at)
            self.run_so_far.event_seconds.append(time.process_time() - started)

    def _judged(self, verdicts: Verdicts, comparison: PeerComparison, minute: int, now: float) -> None:
        """Open cases about suspicious workers, and remember what moved together."""
        self._nodes.slower = numpy.expm1(comparison.slower[-1])
        if numpy.isfinite(comparison.requests[-1]).any():
            self._metrics_at = (minute + 1) * _MINUTE
        for shift in verdicts.shifts:
            self._shifted[shift.unit, shift.name] = minute
            self.run_so_far.shifts.setdefault((shift.unit, shift.name), minute)
        self._shifted = {unit: seen for unit, seen in self._shifted.items() if minute - seen < _SHIFT_MINUTES}
        for worker in numpy.flatnonzero(verdicts.suspicious):
            kind: FaultKind = "slow_worker" if verdicts.kind[worker] == "slow" else "failing_worker"
            self._add(
                int(self._layout.node[worker]),
                Evidence(
                    kind=kind,
                    code=str(verdicts.kind[worker]),
                    at=now,
                    source="peers",
                    fatal=False,
                    figure=float(verdicts.slower[worker]),
                ),
            )

    def _add(self, node: int, evidence: Evidence) -> None:
        name = self._nodes.name(node)
        case = self._cases.get(name)
        if case is None or case.state == "cleared":
            pool = str(self._layout.pool[node])
            cell = str(self._layout.cell[node])
            self._cases[name] = opened_case(
                platform="simulated", cell=cell, pool=pool, node=name, node_uid=name, evidence=evidence
            )
        elif not case.ended:
            self._cases[name] = case.with_evidence(evidence)

    def _advance_all(self, now: float) -> None:
        for name in [name for name, case in self._cases.items() if not case.ended]:
            self._advance(name, now)
        self._cases = {name: case for name, case in self._cases.items() if case.state != "done"}

    def _advance(self, name: str, now: float) -> None:
        """Take steps of a case until it has to wait."""
        case = self._cases[name]
        while not case.ended:
            after = advance(case, self._view(case, now), self._settings, self._nodes, now)
            if after.state == "confirmed" and case.state == "suspected":
                self._found(case, now)
            if after.state == "cordoned":
                self._cordoned(after, now)
            waiting = after.state == case.state
            case = self._cases[name] = after
            if waiting:
                return

    def _view(self, case: RepairCase, now: float) -> FleetView:
        others = [each for each in self._cases.values() if each.pool == case.pool and not each.ended]
        while self._started and self._started[0][0] < now - 3600:
            self._started.popleft()
        cell = int(case.cell)
        return FleetView(
            pool=case.pool,
            nodes=int(self._pool_nodes[int(case.pool)]),
            unhealthy=sum(each.state != "suspected" or has_same_cause(case, each) for each in others),
            in_flight=sum(each.state in CASES_IN_FLIGHT and each.node != case.node for each in others),
            started_last_hour=sum(each == cell for _, each in self._started),
            metrics_at=self._metrics_at,
            shifted=frozenset(self._shifted),
            reboots=self._nodes.rebooted.get(int(case.node.split("-")[1]), 0),
        )

    def _served(self, now: float) -> None:
        for node in self._nodes.settle(now):
            for found in self._open.get(node, []):
                if found.found_at is not None and found.serving_at is None:
                    found.serving_at = now

    def _found(self, case: RepairCase, now: float) -> None:
        node = int(case.node.split("-")[1])
        for found in self._open.get(node, []):
            if found.found_at is None and found.fault.at <= now and self._lasts(found.fault, now):
                found.found_at = now

    @staticmethod
    def _lasts(fault: GreyFailure | HardwareFault, now: float) -> bool:
        return not isinstance(fault, GreyFailure) or fault.until + _EXPLAINED_SECONDS > now

    def _cordoned(self, case: RepairCase, now: float) -> None:
        node = int(case.node.split("-")[1])
        self.run_so_far.drains += 1
        self._started.append((now, int(case.cell)))
        healthy = node not in self._nodes.broken
        if healthy and not self._metrics.failures_on(node, now, _EXPLAINED_SECONDS):
            self.run_so_far.false_drains.append(FalseDrain(node, now, case.evidence))
