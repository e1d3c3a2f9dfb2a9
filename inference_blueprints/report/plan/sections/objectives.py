"""Objectives, compared with the plan's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from inference_blueprints.report.plan.cells import UNKNOWN
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES, TokenPrice
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_estimates import answer_time
from inference_blueprints.serving.performance import min_time_per_output_token_ms, time_to_first_token_ms

_NAMES = {
    "timeToFirstTokenP90Ms": "time to first token",
    "timePerOutputTokenP90Ms": "time per output token",
    "deadlineMillis": "deadline of real time",
}
#: A plan replays no requests, so it never says that an objective is met.
_VERDICTS = {True: "missed", None: "not replayed"}
#: The stated peak is that of the busiest minute. Nine of ten of its requests arrive in these seconds.
_NINE_TENTHS_OF_A_MINUTE = 54.0
_MS = 1000.0
#: A replay's 90th percentile of the time per output token was up to 5 % below the plan's mean for the shipped
#: blueprints at half of their peak to 1.6 times it.
_REPLAYS_DIFFER = 1.1


@dataclass(frozen=True, slots=True)
class ObjectiveCheck:
    """One latency objective of a model, and what the plan expects of a deployment."""

    model: str
    deployment: str
    objective: Literal["timeToFirstTokenP90Ms", "timePerOutputTokenP90Ms", "deadlineMillis"]
    """Key of the objective in the blueprint. The deadline is that of `realTime`, for the whole answer."""
    objective_ms: float
    """The objective, in milliseconds."""
    planned_ms: float | None
    """Least possible figure (simulated), in milliseconds; None without a latency profile. For the first
    token: a mean prompt that does not wait. For each output token: the mean at the stated peak, or that of
    one request alone if the workers do not serve the peak. For the deadline: a mean answer with both."""
    queued_ms: float = 0.0
    """Wait for the first token in the last tenth of the busiest minute, in milliseconds, because requests
    arrive faster than the workers answer them; 0 if the workers keep up."""

    @property
    def is_missed(self) -> bool | None:
        """True if the plan's own figures are above the objective; else None: only a replay shows it."""
        if self.planned_ms is None:
            return None
        margin = 1.0 if self.objective == "timeToFirstTokenP90Ms" else _REPLAYS_DIFFER
        return self.planned_ms + self.queued_ms > self.objective_ms * margin or None


def _checks(basis: PlanBasis) -> Iterator[ObjectiveCheck]:
    """Yield the objectives of each deployment with the plan's figures."""
    prices = {(price.model, price.deployment): price for price in basis[TOKEN_PRICES]}
    for roles in basis.deployments.values():
        model = roles[0].model
        deployment, wanted = (model.name, roles[0].deployment.name), model.objectives
        price = prices.get(deployment)
        first = time_to_first_token_ms(roles)
        # Workers that are overloaded let requests wait, and have fewer at once than they could hold.
        token = price.time_per_output_token_ms if price and price.carries_the_peak else None
        token = token or min_time_per_output_token_ms(roles)
        if wanted.time_to_first_token_p90_ms is not None:
            yield ObjectiveCheck(
                *deployment,
                "timeToFirstTokenP90Ms",
                wanted.time_to_first_token_p90_ms,
                first,
                _queued_ms(price),
            )
        if wanted.time_per_output_token_p90_ms is not None:
            yield ObjectiveCheck(
                *deployment, "timePerOutputTokenP90Ms", wanted.time_per_output_token_p90_ms, token
            )
        if model.real_time is not None:
            length = roles[0].traffic.means.output_tokens
            answer = None if first is None or token is None else answer_time(length, first, token)
            yield ObjectiveCheck(
                *deployment, "deadlineMillis", model.real_time.deadline_millis, answer, _queued_ms(price)
            )


def _queued_ms(price: TokenPrice | None) -> float:
    """Return how long a request waits that arrives late in the busiest minute, if it arrives too fast."""
    if price is None or price.carries_the_peak:
        return 0.0
    behind = price.peak_requests_per_second / price.requests_per_second - 1.0
    return _NINE_TENTHS_OF_A_MINUTE * behind * _MS


def objectives(summary: PlanSummary) -> TextTable:
    """Return the table of objectives, which has rows if a model states some."""
    return TextTable(
        "Objectives (simulated)",
        ("deployment", "objective"),
        ("wanted, ms", "at least, ms", "result"),
        tuple(map(_row, summary[OBJECTIVES])),
        tuple(_notes(summary[OBJECTIVES])),
    )


def _row(check: ObjectiveCheck) -> tuple[str, ...]:
    return (
        f"{check.model}/{check.deployment}",
        _NAMES[check.objective],
        f"{check.objective_ms:,g}",
        UNKNOWN if check.planned_ms is None else f"{check.planned_ms + check.queued_ms:,.1f}",
        UNKNOWN if check.planned_ms is None else _VERDICTS[check.is_missed],
    )


def _notes(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    yield (
        "At least: from the model's latency profile. For the time per output token, the mean at the stated "
        "peak; for the time to first token, one mean prompt that does not wait, and the queue of the busiest "
        "minute if the workers answer less than the peak; for the deadline, a mean answer with both. Wanted: "
        "the 90th percentile, and for the deadline each answer. Under load, requests wait for each other, "
        "and the 90th percentile is higher. The plan does not replay requests: `blueprints tune` does."
    )
    yield from _missed(checks)


def _missed(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    """Yield a sentence for each objective that is missed."""
    for check in checks:
        if check.is_missed and check.planned_ms is not None:
            queued = f", {check.queued_ms:,.0f} ms of it in a queue that grows" if check.queued_ms else ""
            yield (
                f"{check.model}/{check.deployment} misses its {_NAMES[check.objective]}: "
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
