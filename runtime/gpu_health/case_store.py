"""Cases, places of replacements and what was observed: records of the operations table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from inference_contracts.operations_names import HEALTH_SERVICE
from inference_contracts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from inference_decisions.repairs.repair_case import Evidence, RepairCase
from operations.operations_errors import VersionConflictError
from operations.operations_table import AuditRecord, OperationsTable, StoredRecord

_CASE: Final = "case#"
_PLACES: Final = "places"
_OBSERVED: Final = "observed"
_TOLD: Final = "told#"
_HELD: Final = "held#"
_REBOOTS: Final = "reboots#"
#: How long an ended case still counts: until then the same report does not open another one.
_KEPT_SECONDS: Final = 86400.0
#: Attempts to write a record that others write too.
_ATTEMPTS: Final = 6


@dataclass(frozen=True, slots=True)
class Observation:
    """What the newest run of `minute` saw."""

    metrics_at: float = 0.0
    """End of the newest window that workers reported, in seconds since the epoch."""
    shifts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Time at which the workers of each unit last became slow together, by unit and name."""


@dataclass(frozen=True, slots=True)
class HeldPool:
    """Whether the breaker holds the replacements of a pool."""

    pool: str
    since: float = 0.0
    """Since when, in seconds since the epoch. Zero if it does not."""
    seen: float = 0.0
    """When a run last saw that it does."""
    told_at: float = 0.0
    """When people were told of it. Zero if they were not."""
    version: int = 0
    """Number of writes."""


class CaseStore:
    """The cases of one cell."""

    def __init__(self, table: OperationsTable) -> None:
        self._table = table

    def read(self, node_uid: str, now: float) -> RepairCase | None:
        """Return the case of a node. None if there is none, or it ended long ago."""
        stored = self._table.read(f"{_CASE}{node_uid}", now)
        return None if stored is None else _case(stored)

    def cases(self, now: float) -> Iterator[RepairCase]:
        """Return all cases, with those that ended lately."""
        return map(_case, self._table.list(_CASE, now))

    def write(self, case: RepairCase, now: float, *, before: RepairCase | None = None) -> RepairCase:
        """Write a case if nobody else did since it was read, and an audit record if its state changed.

        case: The case. Its version is that which was read.
        now: Seconds since the epoch.
        before: The case as it was. None for a new case.
        Raises VersionConflictError if somebody else wrote it.
        """
        changed = before is None or (before.state, before.reason) != (case.state, case.reason)
        version = self._table.write(
            f"{_CASE}{case.node_uid}",
            case.as_dict(),
            version=case.version,
            now=now,
            expires=now + _KEPT_SECONDS if case.ended else None,
            audit=_audit(case, before, now) if changed else None,
        )
        return replace(case, version=version)

    def take_place(self, case: RepairCase, places: int, per_hour: int, now: float) -> bool:
        """Take a place of the case's pool and of the hour, atomically. False if all are taken.

        Both are in one record, so that two runs at once cannot exceed either.

        places: Places of the pool.
        per_hour: Most repairs that start within an hour.
        """
        for _ in range(_ATTEMPTS):
            stored = self._table.read(_PLACES, now)
            held, starts = _places(stored, now)
            mine = held.setdefault(case.pool, [])
            if case.node_uid in mine:
                return True
            if len(mine) >= places or len(starts) >= per_hour:
                return False
            mine.append(case.node_uid)
            if self._write_places(stored, held, [*starts, (case.node_uid, now)], now):
                return True
        raise VersionConflictError("the record of places is written by others all the time")

    def give_place_back(self, pool: str, node_uid: str, now: float) -> None:
        """Give a place back, if the node holds one. The start still counts for its hour."""
        for _ in range(_ATTEMPTS):
            stored = self._table.read(_PLACES, now)
            held, starts = _places(stored, now)
            if node_uid not in held.get(pool, []):
                return
            held[pool].remove(node_uid)
            if self._write_places(stored, held, starts, now):
                return
        raise VersionConflictError("the record of places is written by others all the time")

    def places(self, now: float) -> tuple[Mapping[str, list[str]], list[tuple[str, float]]]:
        """Return who holds places, by pool, and the replacements that started within an hour."""
        return _places(self._table.read(_PLACES, now), now)

    def note_reboot(self, case: RepairCase, now: float) -> None:
        """Store that the node of a case is rebooted. A case counts once, however often it is noted.

        now: Seconds since the epoch.
        """
        entry, mine = f"{_REBOOTS}{case.node_uid}", f"{case.times['rebooting']:.0f}"
        for _ in range(_ATTEMPTS):
            stored = self._table.read(entry, now)
            noted = {} if stored is None else dict(stored.content["noted"])
            if mine in noted:
                return
            content, version = {"noted": {**noted, mine: now}}, stored.version if stored else 0
            try:
                self._table.write(entry, content, version=version, now=now, expires=now + _KEPT_SECONDS)
            except VersionConflictError:
                continue
            return
        raise VersionConflictError("the record of reboots is written by others all the time")

    def reboots(self, node_uid: str, now: float) -> int:
        """Return how often a node was rebooted within a day."""
        stored = self._table.read(f"{_REBOOTS}{node_uid}", now)
        noted = {} if stored is None else stored.content["noted"]
        return sum(float(at) > now - SECONDS_PER_DAY for at in noted.values())

    def _write_places(
        self,
        stored: StoredRecord | None,
        held: Mapping[str, list[str]],
        starts: list[tuple[str, float]],
        now: float,
    ) -> bool:
        content = {"held": held, "starts": starts}
        try:
            self._table.write(_PLACES, content, version=stored.version if stored else 0, now=now)
        except VersionConflictError:
            return False
        return True

    def read_observation(self, now: float) -> Observation:
        """Return what the newest run of `minute` saw."""
        stored = self._table.read(_OBSERVED, now)
        if stored is None:
            return Observation()
        shifts = {(unit, name): float(at) for unit, name, at in stored.content["shifts"]}
        return Observation(float(stored.content["metricsAt"]), shifts)

    def note_observation(self, observation: Observation, now: float) -> None:
        """Store what this run saw. If two runs write at once, the first one wins."""
        stored = self._table.read(_OBSERVED, now)
        shifts = [[unit, name, at] for (unit, name), at in sorted(observation.shifts.items())]
        content = {"metricsAt": observation.metrics_at, "shifts": shifts}
        try:
            self._table.write(_OBSERVED, content, version=stored.version if stored else 0, now=now)
        except VersionConflictError:
            return

    def was_reported(self, case: RepairCase, reason: str, now: float) -> bool:
        """Return whether people were informed of a case's reason."""
        return self._table.read(f"{_TOLD}{case.node_uid}#{reason}", now) is not None

    def note_report(self, case: RepairCase, reason: str, now: float) -> None:
        """Store that people were informed."""
        entry = f"{_TOLD}{case.node_uid}#{reason}"
        try:
            self._table.write(entry, {"at": now}, version=0, now=now, expires=now + _KEPT_SECONDS)
        except VersionConflictError:
            return

    def read_held(self, pool: str, now: float) -> HeldPool:
        """Return whether the breaker holds a pool, as the newest run noted it."""
        stored = self._table.read(f"{_HELD}{pool}", now)
        if stored is None:
            return HeldPool(pool)
        since = float(stored.content["since"])
        # Records of before have neither time.
        seen = float(stored.content.get("seen", since))
        told_at = float(stored.content.get("toldAt", since if stored.content.get("told") else 0.0))
        return HeldPool(pool, since, seen, told_at, stored.version)

    def note_held(self, held: HeldPool, now: float) -> None:
        """Store whether the breaker holds a pool. If two runs write at once, the first one wins."""
        content = {"since": held.since, "seen": held.seen, "toldAt": held.told_at}
        try:
            self._table.write(f"{_HELD}{held.pool}", content, version=held.version, now=now)
        except VersionConflictError:
            return


def _places(stored: StoredRecord | None, now: float) -> tuple[dict[str, list[str]], list[tuple[str, float]]]:
    if stored is None:
        return {}, []
    starts = [
        (str(uid), float(at)) for uid, at in stored.content["starts"] if float(at) > now - SECONDS_PER_HOUR
    ]
    return {pool: list(uids) for pool, uids in stored.content["held"].items()}, starts


def case_of(content: Mapping[str, Any], version: int = 0) -> RepairCase:
    """Return the case of a record, or of the annotation of a node."""
    evidence = tuple(Evidence(**each) for each in content["evidence"])
    return RepairCase(**{**content, "evidence": evidence, "version": version})


def _case(stored: StoredRecord) -> RepairCase:
    return case_of(stored.content, stored.version)


def _audit(case: RepairCase, before: RepairCase | None, now: float) -> AuditRecord:
    content = {
        "node": case.node,
        "nodeUid": case.node_uid,
        "pool": case.pool,
        "from": None if before is None else before.state,
        "to": case.state,
        "reason": case.reason,
        "evidence": case.as_dict()["evidence"],
        "attempts": case.attempts,
        "owner": case.owner_name,
        "instance": case.instance,
        "replacement": case.replacement,
    }
    return AuditRecord(HEALTH_SERVICE, content, now)
