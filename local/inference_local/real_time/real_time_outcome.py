"""What the pages of an ad server got from a model, as data and as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inference_blueprints.measure.statistics import amount, milliseconds, percentile
from inference_blueprints.spec.types import JudgedObjective, deadline_objective, judge
from inference_contracts.number_text import number


@dataclass(frozen=True, slots=True)
class PageView:
    """One page that asked the ad server."""

    seconds: float
    """Time from when the page was due until its ad was there."""
    fallback: str | None = None
    """Why the ad is the fallback. None if the model chose it."""
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    """`prompt_tokens`, `answer_tokens`: Tokens of the model's call. None without an answer."""


@dataclass(frozen=True, slots=True)
class RealTimeOutcome:
    """What the pages of all real-time models got."""

    models: tuple[str, ...]
    skipped: str | None = None
    """Why no ad server ran. None if one ran."""
    requests: int = 0
    """Pages that were counted."""
    fallbacks: int = 0
    """Pages that got the fallback."""
    fallback_reasons: Mapping[str, int] = field(default_factory=dict)
    """How many for each reason of the Java client."""
    p50_ms: float | None = None
    p99_ms: float | None = None
    """`p50_ms`, `p99_ms`: Percentiles of the time of a page, in milliseconds. None without pages."""
    in_time_ms: float | None = None
    """Percentile of the time of a page that must be within the deadline, in milliseconds: all pages but the
    allowed share of fallbacks."""
    deadline_ms: float | None = None
    """The shortest deadline of the models, in milliseconds."""
    fallback_limit: float | None = None
    """The smallest share of fallbacks that the blueprint allows, 0 to 1."""
    requests_per_second: float = 0.0
    """Rate of all pages together."""
    input_tokens: float | None = None
    output_tokens: float | None = None
    """`input_tokens`, `output_tokens`: Mean tokens of prompts and answers, as the endpoint counted them. None
    without an answer."""
    warm_up_requests: int = 0
    """Pages before those that were counted, while the virtual machine compiled the server."""

    @property
    def is_bad(self) -> bool:
        """Whether a goal was missed."""
        if self.skipped is not None:
            return False
        if self.deadline_ms is None or self.fallback_limit is None:
            return True
        wanted = deadline_objective(self.deadline_ms, self.fallback_limit * 100)
        late = not JudgedObjective(wanted, self.in_time_ms).met
        return late or self.fallbacks > self.fallback_limit * self.requests


def outcome_of(
    views: Sequence[PageView],
    models: Sequence[str],
    *,
    deadline_ms: float,
    fallback_limit: float,
    requests_per_second: float,
    warm_up_requests: int,
) -> RealTimeOutcome:
    """Count pages.

    views: The pages, without those of the warm-up.
    deadline_ms, fallback_limit, requests_per_second, warm_up_requests: As in `RealTimeOutcome`.
    """
    reasons = Counter(view.fallback for view in views if view.fallback is not None)
    times = [view.seconds * 1000 for view in views]
    wanted = deadline_objective(deadline_ms, fallback_limit * 100)
    [deadline] = judge([wanted], lambda _, percent: percentile(times, percent))
    return RealTimeOutcome(
        models=tuple(models),
        requests=len(views),
        fallbacks=reasons.total(),
        fallback_reasons=dict(sorted(reasons.items())),
        p50_ms=percentile(times, 50),
        p99_ms=percentile(times, 99),
        in_time_ms=deadline.value_ms,
        deadline_ms=deadline_ms,
        fallback_limit=fallback_limit,
        requests_per_second=requests_per_second,
        input_tokens=_mean([view.prompt_tokens for view in views]),
        output_tokens=_mean([view.answer_tokens for view in views]),
        warm_up_requests=warm_up_requests,
    )


def real_time_lines(outcome: RealTimeOutcome, *, simulated: bool) -> list[str]:
    """Return sentences about the pages, for both the terminal and the report's page.

    simulated: Whether times come from simulated engines.
    """
    mark = " (simulated)" if simulated else ""
    names = ", ".join(outcome.models)
    if outcome.skipped is not None:
        return [f"Real time, {names}: SKIPPED. {outcome.skipped}."]
    limit = (outcome.fallback_limit or 0.0) * 100
    share = 100 * outcome.fallbacks / outcome.requests if outcome.requests else 0.0
    reasons = ", ".join(f"{count} {reason}" for reason, count in outcome.fallback_reasons.items())
    return [
        f"Real time, {names}{mark}: a Java ad server answered {amount(outcome.requests, 'page')}, "
        f"{number(outcome.requests_per_second, 6)} per second, each with a call of the model.",
        f"Time of a page{mark}: p50 {milliseconds(outcome.p50_ms)} ms, p99 "
        f"{milliseconds(outcome.p99_ms)} ms, deadline {milliseconds(outcome.deadline_ms)} ms.",
        f"Fallbacks{mark}: {outcome.fallbacks} of {outcome.requests} ({share:.2f} %, at most {limit:g} %)"
        + (f": {reasons}." if reasons else "."),
        f"Mean tokens: {_tokens(outcome.input_tokens)} of the prompt, "
        f"{_tokens(outcome.output_tokens)} of the answer. {outcome.warm_up_requests} pages before them, "
        "while the virtual machine compiled the server, are not counted.",
    ]


def _mean(counts: Sequence[int | None]) -> float | None:
    known = [each for each in counts if each is not None]
    return sum(known) / len(known) if known else None


def _tokens(mean: float | None) -> str:
    return "unknown" if mean is None else f"{mean:,.0f}"
