"""Objectives in the plan's tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.report.figures import ObjectiveCheck, PlanSummary
from inference_blueprints.report.plan.tables.cells import UNKNOWN
from inference_blueprints.report.tables.text_table import TextTable

_NAMES = {
    "timeToFirstTokenP90Ms": "time to first token",
    "timePerOutputTokenP90Ms": "time per output token",
}
_VERDICTS = {True: "missed", False: "not missed", None: UNKNOWN}


def objectives(summary: PlanSummary) -> TextTable:
    """Return the table of objectives, which has rows if a model states some."""
    return TextTable(
        "Objectives (simulated)",
        ("deployment", "objective"),
        ("90th percentile wanted, ms", "mean planned, ms", "result"),
        tuple(map(_row, summary.objectives)),
        tuple(_notes(summary.objectives)),
    )


def _row(check: ObjectiveCheck) -> tuple[str, ...]:
    return (
        f"{check.model}/{check.deployment}",
        _NAMES[check.objective],
        f"{check.objective_ms:g}",
        UNKNOWN if check.planned_ms is None else f"{check.planned_ms:.1f}",
        _VERDICTS[check.is_missed],
    )


def _notes(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    yield (
        "Planned: from the model's latency profile, at the stated peak for the time per output token, "
        "and for "
        "one mean prompt without waiting for the time to first token. The 90th percentile is higher than a "
        "mean, so an objective that is not missed here can still be missed."
    )
    for check in checks:
        if check.is_missed:
            yield (
                f"{check.model}/{check.deployment} misses its {_NAMES[check.objective]}: "
                f"{check.planned_ms:.1f} ms planned, {check.objective_ms:g} ms wanted."
            )
