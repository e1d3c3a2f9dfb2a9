"""One run of the capacity shift: read, decide, record, change.

The state is written before anything is changed, with a condition on the version that was read. So of two runs
at once only one changes anything. A run that is killed after that leaves a state whose decision the next run
takes up: changes follow from what is live and not from what an earlier run believed that it did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aws_lambda_powertools import Logger

from capacity_shift.cell_reader import CellReader, DemandReader
from capacity_shift.shift_changes import ShiftActuators, ShiftChange, make
from inference_contracts import operations_names, shift_names
from inference_contracts.operations_names import SHIFT_SERVICE
from inference_contracts.shift_names import SHIFT_ENTRY, ShiftConfiguration
from inference_decisions.capacity_shift.demand_history import DemandHistory
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from inference_decisions.capacity_shift.shift_view import CellView, FreezeSwitch, ShiftSettings, ShiftState
from operations.freeze_switch import FreezeState
from operations.operations_errors import MetricsError, TableError, VersionConflictError
from operations.operations_table import AuditRecord, OperationsTable, StoredRecord

_logger = Logger(child=True)

Decide = Callable[
    [Mapping[str, DemandHistory], CellView, ShiftState | None, ShiftSettings, float], ShiftDecision
]


@dataclass(frozen=True, slots=True)
class ShiftOutcome:
    """What a run did."""

    decision: ShiftDecision
    ceilings: Mapping[str, int]
    """Ceilings of batch that it wrote, by model."""
    done: tuple[str, ...]
    failed: tuple[str, ...]
    """`done`, `failed`: Changes in words."""
    metrics_are_read: bool
    """Whether CloudWatch answered."""
    overtaken: bool = False
    """Whether another run decided at the same time. Then this one changed nothing."""


class ShiftRun:
    """Runs the shift once a minute.

    configuration: What the shift moves.
    demand, cell: Readers of demand, and of what runs.
    actuators: Makes changes.
    table: State and audit records.
    freeze: Reads the freeze switch.
    decide: The decision.
    """

    def __init__(
        self,
        *,
        configuration: ShiftConfiguration,
        demand: DemandReader,
        cell: CellReader,
        actuators: ShiftActuators,
        table: OperationsTable,
        freeze: Callable[[], FreezeState],
        decide: Decide,
    ) -> None:
        self._configuration = configuration
        self._demand, self._cell, self._actuators = demand, cell, actuators
        self._table, self._freeze, self._decide = table, freeze, decide

    def run(self, now: float) -> ShiftOutcome:
        """Decide once, and carry the decision out where that is allowed.

        now: Seconds since the epoch.
        """
        stored, table_is_read = self._stored(now)
        histories, metrics_are_read = self._histories(now)
        live = self._cell.read(now)
        switch = self._switch()
        # Without the table nobody knows what other runs decided, so nothing is lent.
        freeze: FreezeSwitch = switch if table_is_read or switch == "frozen" else "unknown"
        settings = ShiftSettings.of(self._configuration, freeze)
        state = ShiftState.from_item(stored.content["state"]) if stored else None
        decision = self._decide(histories, live.view, state, settings, now)
        changes: list[ShiftChange] = []
        waiting: Mapping[str, float] = {}
        possible = decision
        if decision.carried_out:
            before = stored.content.get("waiting", {}) if stored else {}
            possible, waiting = self._actuators.possible(decision, live, before, now)
            changes = self._actuators.changes(possible, live)
        ceilings = self._ceilings(possible, stored)
        planned = {
            "planned": [each.what for each in changes],
            "unread": dict(live.unread),
            "ceilings": ceilings,
            **({"waiting": dict(waiting)} if waiting else {}),
        }
        record = {"state": decision.state.as_item(), "ceilings": ceilings, "waiting": dict(waiting)}
        audit = AuditRecord(SHIFT_SERVICE, {**decision.as_record(), **planned}, now)
        # Also without the table the log has the decision.
        _logger.info("decision", decision=audit.content)
        try:
            version = stored.version if stored else 0
            self._table.write(SHIFT_ENTRY, record, version=version, now=now, audit=audit)
        except VersionConflictError:
            return ShiftOutcome(decision, {}, (), (), metrics_are_read, overtaken=True)
        except TableError:
            # Only what is in favour of real time may follow: the next run does not know that it was done.
            _logger.exception("the state was not written")
            table_is_read = False
        failed: list[str] = []
        if self._configuration.action == "shift":
            failed = self._set_ceilings(ceilings if table_is_read else dict.fromkeys(ceilings, 0), now)
        # Nobody knows what workers need that could not be read.
        done, not_made = make(changes, may_lend=table_is_read and not failed and not live.unread)
        failed += [*not_made, *self._actuators.overdue(waiting, now)]
        if failed:
            self._record_failures(failed, now)
        return ShiftOutcome(decision, ceilings, tuple(done), tuple(failed), metrics_are_read)

    def _stored(self, now: float) -> tuple[StoredRecord | None, bool]:
        """Return the state of the last run, and whether the table answered."""
        try:
            return self._table.read(SHIFT_ENTRY, now), True
        except TableError:
            _logger.exception("a service did not answer")
            return None, False

    def _histories(self, now: float) -> tuple[Mapping[str, DemandHistory], bool]:
        """Return the demand, and whether CloudWatch answered. Otherwise it is what was read before."""
        try:
            return self._demand.histories(now), True
        except MetricsError:
            _logger.exception("a service did not answer")
            return self._demand.known(), False

    def _switch(self) -> FreezeSwitch:
        found = self._freeze()
        if not found.frozen:
            return "thawed"
        return "frozen" if found.readable else "unknown"

    def _ceilings(self, decision: ShiftDecision, stored: StoredRecord | None) -> dict[str, int]:
        """Return the ceilings of batch. While nothing is carried out, those of before stay."""
        if decision.carried_out:
            return dict(decision.ceilings(self._configuration))
        return dict(stored.content["ceilings"]) if stored else {}

    def _set_ceilings(self, ceilings: Mapping[str, int], now: float) -> list[str]:
        """Write the ceilings, and return what failed. Ceilings that are not renewed end by themselves."""
        try:
            self._actuators.set_ceilings(ceilings, now)
        except TableError as error:
            return [f"ceilings of batch: {error}"]
        return []

    def _record_failures(self, failed: list[str], now: float) -> None:
        try:
            self._table.audit(AuditRecord(SHIFT_SERVICE, {"failed": failed}, now))
        except TableError:
            _logger.exception("the failures were not recorded")


# Figures of a run, which the function writes as metrics.


def shift_figures(outcome: ShiftOutcome) -> Mapping[str, float]:
    """Return values by metric name.

    outcome: What the run did.
    """
    decided = outcome.decision.deployments
    codes = [{reason.code for reason in each.reasons} for each in decided]
    return {
        operations_names.RUNS: 1,
        operations_names.FROZEN: int(any(each & {"frozen", "freeze_unknown"} for each in codes)),
        operations_names.METRICS_UNREADABLE: int(not outcome.metrics_are_read),
        shift_names.SHIFTS_OVERTAKEN: int(outcome.overtaken),
        shift_names.SHIFT_CHANGES: len(outcome.done),
        shift_names.SHIFT_FAILURES: len(outcome.failed),
        shift_names.SHIFT_UNMEASURED: sum("metrics_missing" in each for each in codes),
        shift_names.SHIFT_FLOORS: sum(each.floor for each in decided),
        shift_names.SHIFT_BATCH_PLACES: sum(outcome.ceilings.values()),
    }
