"""Objectives, compared with the plan's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from inference_blueprints.report.plan.cells import UNKNOWN
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES, TokenPrice
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_estimates import answer_time
from inference_blueprints.serving.performance import bound_ms
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import (
    EACH_TOKEN,
    FIRST_TOKEN,
    LATENCY_NAMES,
    LatencyKind,
    judge,
)

#: A plan replays no requests, so it never says that an objective is met.
_VERDICTS = {True: "missed", None: "not replayed"}
#: The stated peak is that of the busiest minute.
_MINUTE_SECONDS = 60.0
_MS = 1000.0
#: A replay's 90th percentile of the time per output token was up to 5 % below the plan's mean for the shipped
#: blueprints at half of their peak to 1.6 times it.
_REPLAYS_DIFFER = 1.1


@dataclass(frozen=True, slots=True)
class ObjectiveCheck:
    """One latency objective of a model, and what the plan expects of a deployment."""

    model: str
    deployment: str
    objective: str
    """Key of the objective in the blueprint, such as ``requestMs.p99``. ``deadlineMillis`` is that of
    `realTime`, for the whole answer."""
    objective_ms: float
    """The objective, in milliseconds."""
    planned_ms: float | None
    """Least possible figure (simulated), in milliseconds; None without a latency profile. For the first
    token: a mean prompt that does not wait. For each output token: the mean at the stated peak, or that of
    one request alone if the workers do not serve the peak. For the deadline: a mean answer with both."""
    queued_ms: float
    """Wait for the first token at this percentile of the busiest minute, in milliseconds, because requests
    arrive faster than the workers answer them; 0 if the workers keep up."""
    name: str
    """What the objective is about, such as ``whole request p99``."""
    percentile: float
    """The percentile of the requests that the objective limits."""
    bound_ms: float | None
    """The bound: the latency of one mean request alone (simulated), in milliseconds. None without a latency
    profile."""

    @property
    def is_missed(self) -> bool | None:
        """True if the plan's own figures are above the objective; else None: only a replay shows it."""
        if self.planned_ms is None:
            return None
        margin = 1.0 if self.name.startswith(LATENCY_NAMES[FIRST_TOKEN]) else _REPLAYS_DIFFER
        return self.planned_ms + self.queued_ms > self.objective_ms * margin or None


def _checks(basis: PlanBasis) -> Iterator[ObjectiveCheck]:
    """Yield the objectives of each deployment with the plan's figures."""
    prices = {(price.model, price.deployment): price for price in basis[TOKEN_PRICES]}
    for roles in basis.deployments.values():
        model = roles[0].model
        price = prices.get((model.name, roles[0].deployment.name))
        for judged in judge(model.stated_objectives, partial(_bound, roles)):
            wanted = judged.objective
            yield ObjectiveCheck(
                model=model.name,
                deployment=roles[0].deployment.name,
                objective=wanted.key,
                objective_ms=wanted.limit_ms,
                planned_ms=_planned_ms(roles, wanted.kind, price),
                queued_ms=0.0 if wanted.kind == EACH_TOKEN else _queued_ms(price, wanted.percentile),
                name=wanted.name,
                percentile=wanted.percentile,
                bound_ms=judged.value_ms,
            )


def _bound(roles: tuple[ResolvedWorkers, ...], kind: LatencyKind, _percentile: float) -> float | None:
    """Return the bound of every percentile."""
    return bound_ms(roles, kind)


def _planned_ms(
    roles: tuple[ResolvedWorkers, ...], kind: LatencyKind, price: TokenPrice | None
) -> float | None:
    """Return a latency at the stated peak, without the queue; that of one request alone if it is not carried.

    Workers that are overloaded let requests wait, and have fewer at once than they could hold.
    """
    first = bound_ms(roles, FIRST_TOKEN)
    token = price.time_per_output_token_ms if price and price.carries_the_peak else None
    token = token or bound_ms(roles, EACH_TOKEN)
    if kind == FIRST_TOKEN:
        return first
    if kind == EACH_TOKEN or first is None or token is None:
        return token if kind == EACH_TOKEN else None
    return answer_time(roles[0].traffic.means.output_tokens, first, token)


def _queued_ms(price: TokenPrice | None, percentile: float) -> float:
    """Return how long a request waits at this percentile of the busiest minute, if they arrive too fast."""
    if price is None or price.carries_the_peak:
        return 0.0
    behind = price.peak_requests_per_second / price.requests_per_second - 1.0
    return _MINUTE_SECONDS * percentile / 100.0 * behind * _MS


def objectives(summary: PlanSummary) -> TextTable:
    """Return the table of objectives, which has rows if a model states some."""
    return TextTable(
        "Objectives (simulated)",
        ("deployment", "objective"),
        ("wanted, ms", "alone, ms", "at the peak, ms", "result"),
        tuple(map(_row, summary[OBJECTIVES])),
        tuple(_notes(summary[OBJECTIVES])),
    )


def _row(check: ObjectiveCheck) -> tuple[str, ...]:
    return (
        f"{check.model}/{check.deployment}",
        check.name,
        f"{check.objective_ms:,g}",
        UNKNOWN if check.bound_ms is None else f"{check.bound_ms:,.1f}",
        UNKNOWN if check.planned_ms is None else f"{check.planned_ms + check.queued_ms:,.1f}",
        UNKNOWN if check.planned_ms is None else _VERDICTS[check.is_missed],
    )


def _notes(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    yield (
        "From the model's latency profile. Alone: one mean request without any other, which no load makes "
        "faster; a whole request takes the first token and each further one. At the peak, at least: the mean "
        "time per output token; for the first token, a prompt that does not wait, and the queue of the "
        "busiest minute if the workers answer less than the peak; for a whole request, both. Under load, "
        "requests wait for each other, and high percentiles are longer. The plan does not replay requests: "
        "`blueprints tune` does."
    )
    yield from _missed(checks)


def _missed(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    """Yield a sentence for each objective that is missed."""
    for check in checks:
        if check.is_missed and check.planned_ms is not None:
            queued = f", {check.queued_ms:,.0f} ms of it in a queue that grows" if check.queued_ms else ""
            yield (
                f"{check.model}/{check.deployment} misses its {check.name}: "
                f"{check.planned_ms + check.queued_ms:,.1f} ms planned{queued}, {check.objective_ms:,g} ms "
                "wanted."
            )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield what is known of the objectives, and a warning for each that is missed."""
    checks = summary[OBJECTIVES]
    if not checks:
        yield Label.OBJECTIVES, "none stated"
        return
    missed = [check for check in checks if check.is_missed]
    parts = [f"{len(checks)} stated"]
    if missed:
        parts.append(f"{len(missed)} missed by the plan's own figures")
    if all(check.planned_ms is None for check in checks):
        parts.append("whether they are met is unknown without a latency profile")
    elif len(missed) < len(checks):
        parts.append("not replayed: `blueprints tune` does")
    yield Label.OBJECTIVES, ", ".join(parts)
    for sentence in _missed(checks):
        yield Label.WARNINGS, sentence


OBJECTIVES = PlanSection(
    "objectives", lambda basis: tuple(_checks(basis)), _in_short, (objectives,), ("is_missed",)
)
