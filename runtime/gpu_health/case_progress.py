"""Opens cases, and takes each through its steps. Everything is stored before the next step is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from aws_lambda_powertools import Logger

from gpu_health.case_store import CaseStore, Observation
from gpu_health.cell_repairs import CellRepairs, acting
from gpu_health.watched_node import WatchedNode
from inference_contracts import health_names as names
from inference_contracts.health_names import CASES_IN_FLIGHT, LEFT_TO_PEOPLE
from inference_contracts.operations_names import HEALTH_SERVICE, REPLACEMENTS_HELD_RUNBOOK
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.repair_case import Evidence, RepairCase, opened_case
from inference_decisions.repairs.repair_guards import (
    TOO_MANY_UNHEALTHY,
    FleetView,
    breaker,
    has_same_cause,
)
from inference_decisions.repairs.repair_progress import REBOOTED, advance, earliest
from operations.operations_errors import VersionConflictError

#: How long a shift is remembered: workers of one rack do not cross a limit in the same minute.
SHIFT_SECONDS: Final = 300.0
#: How long the breaker may hold a pool before people are told. Runs are a minute apart, so they know within
#: ten minutes, also if one run failed.
HELD_SECONDS: Final = 240.0
#: How long a pool must not be held to count as released. A run in which the node could not be read, or
#: metrics were missing, gives another reason, and does not begin the hold anew.
_RELEASED_SECONDS: Final = 600.0
#: After how long people are told again of a pool that is still held.
_TOLD_AGAIN_SECONDS: Final = 86400.0
#: How long a case that was left to people is not opened again by more evidence.
_SETTLED_SECONDS: Final = 3600.0
_ATTEMPTS: Final = 6
#: A node that is closed already has its place.
_NO_LIMIT: Final = 10**6
#: Metric of each state that a case comes to.
_COUNTED: Final = {
    "suspected": names.CASES_OPENED,
    "confirmed": names.CASES_CONFIRMED,
    "cordoned": names.NODES_CORDONED,
    "done": names.NODES_REPLACED,
    "refused": names.CASES_REFUSED,
    "gave_up": names.CASES_GIVEN_UP,
}
_logger = Logger(service=HEALTH_SERVICE, child=True)


@dataclass(slots=True)
class CaseProgress:
    """The cases of one run."""

    store: CaseStore
    """Where they are."""
    repairs: CellRepairs
    """Acts on the cell."""
    settings: HealthSettings
    """Limits, and whether everything is frozen."""
    observation: Observation
    """What the newest comparison of workers saw."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many cases came to each state in this run, as metrics."""
    held: int = 0
    """How many cases the breaker holds after this run."""

    def add(self, node: WatchedNode, evidence: Evidence, now: float) -> RepairCase | None:
        """Add evidence to the case of a node, or open one. None if it is old news, or the case has ended.

        node: The node as it is now.
        evidence: What speaks against it.
        now: Seconds since the epoch.
        """
        if evidence.at < node.created_at:
            return None  # it is about the machine that was there before
        for _ in range(_ATTEMPTS):
            known = self.store.read(node.uid, now)
            if known is not None and (self._is_settled(known, node, evidence) or _has(known, evidence)):
                return None if known.ended else known
            case = self._with(known, node, evidence)
            try:
                written = self.store.write(case, now, before=None if case is not known else known)
            except VersionConflictError:
                continue
            if known is None or known.ended:
                self.counts[_COUNTED["suspected"]] += 1
            return written
        raise VersionConflictError(f"the case of {node.name} is written by others all the time")

    def _is_settled(self, case: RepairCase, node: WatchedNode, evidence: Evidence) -> bool:
        """Return whether a case has ended, and more evidence does not open it again.

        A case that was left to people opens again if the same node is seen broken an hour later: there may
        be a spare place now, or somebody opened the node again. A node that is still closed is left to them.
        One that came back from a reboot is a case again if it is seen broken afterwards.
        """
        if case.reason == REBOOTED:
            return evidence.at <= earliest(evidence, case.changed_at, self.settings)
        if case.state not in LEFT_TO_PEOPLE:
            return case.ended and case.state != "cleared"
        return bool(node.cordoned and node.mark) or evidence.at <= case.changed_at + _SETTLED_SECONDS

    def _with(self, known: RepairCase | None, node: WatchedNode, evidence: Evidence) -> RepairCase:
        if known is not None and not known.ended:
            return known.with_evidence(evidence)
        cell = self.repairs.platform.cell
        opened = opened_case(
            platform=cell.platform,
            cell=cell.name,
            pool=node.pool,
            node=node.name,
            node_uid=node.uid,
            evidence=evidence,
        )
        return replace(opened, boot=node.boot, version=0 if known is None else known.version)

    def recover(self, nodes: Iterable[WatchedNode], now: float) -> None:
        """Open the cases of nodes that we cordoned and whose case is lost, from their marks.

        nodes: All nodes.
        now: Seconds since the epoch.
        """
        for node in nodes:
            if not (node.cordoned and node.mark) or self.store.read(node.uid, now) is not None:
                continue
            try:
                case = self.repairs.marked_case(node)
            except ValueError:
                _logger.warning("the mark of a node cannot be read", extra={"node": node.name})
                continue
            if case.node_uid == node.uid:
                self.store.write(replace(case, reason="read_from_mark"), now)
                self.store.take_place(case, _NO_LIMIT, _NO_LIMIT, now)

    def give_back_orphans(self, now: float) -> None:
        """Give places back whose case has ended: the run that should have done so was killed."""
        held, _ = self.store.places(now)
        for pool, uids in held.items():
            for uid in uids:
                case = self.store.read(uid, now)
                if case is None or case.ended:
                    self.store.give_place_back(pool, uid, now)

    def advance(self, case: RepairCase, nodes: Sequence[WatchedNode], now: float) -> RepairCase:
        """Take steps of a case until it has to wait, and return it.

        case: An open case as it was read.
        nodes: Nodes of its pool.
        now: Seconds since the epoch.
        """
        self.repairs.boots[case.node] = case.boot
        while not case.ended:
            view = self._view(case, nodes, now)
            after = advance(case, view, self.settings, self.repairs, now)
            if after == case:
                return case
            try:
                after = self.store.write(after, now, before=case)
            except VersionConflictError:
                _logger.info("another run advances the case", extra={"node": case.node})
                return case
            if after.state != case.state:
                self._tell(case, after)
            if after.state == case.state:
                return after
            case = after
        return case

    def _tell(self, before: RepairCase, case: RepairCase) -> None:
        if case.reason == REBOOTED:
            self.counts[names.NODES_REBOOTED] += 1
        elif case.state in _COUNTED:
            self.counts[_COUNTED[case.state]] += 1
        _logger.info(
            "a case moved",
            extra={
                "node": case.node,
                "pool": case.pool,
                "from": before.state,
                "to": case.state,
                "reason": case.reason,
            },
        )

    def _view(self, case: RepairCase, nodes: Sequence[WatchedNode], now: float) -> FleetView:
        """Return what the guards ask, read now: other runs may have moved other cases."""
        cases = [each for each in self.store.cases(now) if each.pool == case.pool]
        left = {each.node_uid for each in cases if each.ended}
        marked = {node.uid for node in nodes if node.cordoned and node.mark}
        in_flight = {each.node_uid for each in cases if each.state in CASES_IN_FLIGHT} | (marked - left)
        counted = self._unhealthy(case, [each for each in cases if not each.ended], nodes, now)
        _, starts = self.store.places(now)
        return FleetView(
            pool=case.pool,
            nodes=len(nodes),
            unhealthy=len(counted),
            counted=tuple(sorted(counted.values())),
            in_flight=len(in_flight - {case.node_uid}),
            started_last_hour=sum(uid != case.node_uid for uid, _ in starts),
            metrics_at=self.observation.metrics_at,
            shifted=frozenset(
                unit for unit, at in self.observation.shifts.items() if now - at < SHIFT_SECONDS
            ),
            reboots=self.store.reboots(case.node_uid, now) if self.settings.reboots_per_node_per_day else 0,
        )

    def _unhealthy(
        self, case: RepairCase, open_cases: Iterable[RepairCase], nodes: Iterable[WatchedNode], now: float
    ) -> dict[str, str]:
        """Return the nodes that count for the breaker, each with its reason, by their identifiers."""
        counted = {
            each.node_uid: f"{each.node}: {each.state}, "
            + ", ".join(f"{one.kind} {one.code}" for one in each.evidence)
            for each in (case, *open_cases)
            if each.node_uid == case.node_uid or each.state != "suspected" or has_same_cause(case, each)
        }
        grown = now - self.settings.boot_seconds
        for node in nodes:
            if node.cordoned and node.mark:
                counted.setdefault(node.uid, f"{node.name}: closed by GPU health, left to people")
            elif not node.ready and node.created_at < grown:
                counted.setdefault(node.uid, f"{node.name}: not ready")
        return counted

    def tell_held(self, nodes: Sequence[WatchedNode], now: float) -> None:
        """Tell people of each pool that the breaker holds for some minutes, with what holds it, and each day.

        now: Seconds since the epoch.
        Raises RepairActionError if they could not be told. The next run tries again.
        """
        waiting = [
            each for each in self.store.cases(now) if not each.ended and each.reason == TOO_MANY_UNHEALTHY
        ]
        self.held = len(waiting)
        by_pool = {each.pool: each for each in waiting}
        for pool in sorted({*self.settings.repaired_by, *by_pool}):
            known = self.store.read_held(pool, now)
            if pool in by_pool:
                held = replace(known, since=known.since or now, seen=now)
                last = known.told_at or held.since - _TOLD_AGAIN_SECONDS + HELD_SECONDS
                if now - last >= _TOLD_AGAIN_SECONDS:
                    self._tell_held(by_pool[pool], nodes, now)
                    held = replace(held, told_at=now)
                self.store.note_held(held, now)
            elif known.since and now - known.seen >= _RELEASED_SECONDS:
                self.store.note_held(replace(known, since=0.0, seen=0.0, told_at=0.0), now)

    def _tell_held(self, case: RepairCase, nodes: Sequence[WatchedNode], now: float) -> None:
        view = self._view(case, [node for node in nodes if node.pool == case.pool], now)
        answer = breaker(view, self.settings)
        if answer is not None:
            with acting("tell people"):
                self.repairs.tell(
                    f"pool {case.pool}",
                    f"Nothing is replaced in pool {case.pool}, cell {self.repairs.platform.cell.name}:"
                    f" {answer.text}\nRunbook: {REPLACEMENTS_HELD_RUNBOOK}",
                )


def _has(case: RepairCase, evidence: Evidence) -> bool:
    """Return whether a case has the same evidence, seen then or later."""
    mark = (evidence.kind, evidence.code, evidence.source)
    return any(
        (each.kind, each.code, each.source) == mark and each.at >= evidence.at for each in case.evidence
    )
