"""Objectives, compared with the plan's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from inference_blueprints.report.plan.cells import UNKNOWN
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.performance import time_to_first_token_ms

_NAMES = {
    "timeToFirstTokenP90Ms": "time to first token",
    "timePerOutputTokenP90Ms": "time per output token",
}
_VERDICTS = {True: "missed", False: "not missed", None: UNKNOWN}


@dataclass(frozen=True, slots=True)
class ObjectiveCheck:
    """One latency objective of a model, and what the plan expects of a deployment."""

    model: str
    deployment: str
    objective: Literal["timeToFirstTokenP90Ms", "timePerOutputTokenP90Ms"]
    """Key of the objective in the blueprint."""
    objective_ms: float
    """The objective, in milliseconds."""
    planned_ms: float | None
    """Figure of the plan (simulated), in milliseconds; None without a latency profile. It is a mean without
    waiting in a queue, so the 90th percentile is higher."""

    @property
    def is_missed(self) -> bool | None:
        """Whether the plan's own figure is above the objective; None if there is no figure."""
        return None if self.planned_ms is None else self.planned_ms > self.objective_ms


def _checks(basis: PlanBasis) -> Iterator[ObjectiveCheck]:
    """Yield the objectives of each deployment with the plan's figures."""
    prices = {(price.model, price.deployment): price for price in basis[TOKEN_PRICES]}
    for roles in basis.deployments.values():
        deployment, wanted = (roles[0].model.name, roles[0].deployment.name), roles[0].model.objectives
        if wanted.time_to_first_token_p90_ms is not None:
            planned = time_to_first_token_ms(roles)
            yield ObjectiveCheck(
                *deployment, "timeToFirstTokenP90Ms", wanted.time_to_first_token_p90_ms, planned
            )
        if wanted.time_per_output_token_p90_ms is not None:
            price = prices.get(deployment)
            planned = price.time_per_output_token_ms if price else None
            yield ObjectiveCheck(
                *deployment, "timePerOutputTokenP90Ms", wanted.time_per_output_token_p90_ms, planned
            )


def objectives(summary: PlanSummary) -> TextTable:
    """Return the table of objectives, which has rows if a model states some."""
    return TextTable(
        "Objectives (simulated)",
        ("deployment", "objective"),
        ("90th percentile wanted, ms", "mean planned, ms", "result"),
        tuple(map(_row, summary[OBJECTIVES])),
        tuple(_notes(summary[OBJECTIVES])),
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
    yield from _missed(checks)


def _missed(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    """Yield a sentence for each objective that is missed."""
    for check in checks:
        if check.is_missed:
            yield (
                f"{check.model}/{check.deployment} misses its {_NAMES[check.objective]}: "
                f"{check.planned_ms:.1f} ms planned, {check.objective_ms:g} ms wanted."
            )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield how many objectives a mean request keeps, and a warning for each that it misses."""
    checks = summary[OBJECTIVES]
    if not checks:
        yield Label.OBJECTIVES, "none stated"
        return
    kept = sum(check.is_missed is False for check in checks)
    if all(check.is_missed is None for check in checks):
        yield (
            Label.OBJECTIVES,
            f"{len(checks)} stated; whether they are kept is unknown without a latency profile",
        )
        return
    unknown = sum(check.is_missed is None for check in checks)
    unknowns = f", {unknown} unknown" if unknown else ""
    yield (
        Label.OBJECTIVES,
        f"{kept} of {len(checks)} kept by a mean request that does not wait{unknowns}; under load: `tune`",
    )
    for sentence in _missed(checks):
        yield Label.WARNINGS, sentence


OBJECTIVES = PlanSection(
    "objectives", lambda basis: tuple(_checks(basis)), _in_short, (objectives,), ("is_missed",)
)
