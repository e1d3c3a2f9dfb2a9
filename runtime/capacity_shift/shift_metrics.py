"""Figures of a run, which the function writes as metrics."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_shift.shift_run import ShiftOutcome
from inference_contracts import operations_names, shift_names


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
