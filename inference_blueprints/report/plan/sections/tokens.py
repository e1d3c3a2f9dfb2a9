"""Price of a million tokens at the stated peak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inference_blueprints.report.figures import PoolSummary, ProcessSummary
from inference_blueprints.report.plan.cells import few, usd
from inference_blueprints.report.plan.section import (
    Label,
    PlanBasis,
    PlanSection,
    PlanSummary,
    ShortLine,
    in_tables_only,
)
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.pricing.rates import share_of
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_lengths import parts
from inference_blueprints.serving.performance import (
    NO_PROFILE,
    full_requests_per_second,
    role_capacity,
    served_requests_per_second,
    why_unknown,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import MILLION, SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Simulated price of a million tokens of a deployment, at its share of the stated peak."""

    model: str
    deployment: str
    requests_per_second: float
    """Served rate: the deployment's share of the peak, or the capacity of its workers if that is less."""
    peak_requests_per_second: float
    """The share of the peak, by workers."""
    concurrent_requests: int
    """Requests at once in a worker, at that rate."""
    time_per_output_token_ms: float
    """Mean time between two tokens of an answer, at that rate; 0 for answers of one token."""
    usd_per_million_tokens: float | None
    usd_per_million_output_tokens: float | None
    """`usd_per_million_tokens`, `usd_per_million_output_tokens`: Over all tokens, and if output carries all;
    None when a price is unknown."""
    usd_per_million_tokens_full: float | None
    """Over all tokens, with every worker as busy as it can be; None if a price is unknown, or if the latency
    profile ends before."""
    counts_all_lengths: bool
    """Whether the figures are means over prompts of all lengths. Otherwise each prompt counts as long as the
    mean, because the file states no longest one."""

    @property
    def carries_the_peak(self) -> bool:
        """Whether the workers serve the whole share of the peak."""
        return self.requests_per_second >= self.peak_requests_per_second


def _token_prices(basis: PlanBasis) -> Iterator[TokenPrice]:
    """Yield the prices of the tokens of each deployment with a latency profile."""
    for roles in basis.deployments.values():
        price = _token_price(roles, basis[POOLS], basis[PROCESSES])
        if price is not None:
            yield price


def _of_tasks(basis: PlanBasis, *tasks: str) -> tuple[str, ...]:
    """Return the deployments whose model has one of some tasks."""
    return tuple(name for name, roles in basis.deployments.items() if roles[0].model.task in tasks)


#: Why a price is unknown, as a clause, where only queues without a load send requests.
_NO_RATE = "its queues state no 'load'"


@dataclass(frozen=True, slots=True)
class BeyondProfile:
    """A deployment whose mean request lies beyond its latency profile, or whose rate is not stated."""

    deployment: str
    """As ``model/deployment``."""
    reason: str
    """Where the profile ends and how long the request is, or that no load is stated, as a clause."""


def _beyond_profile(basis: PlanBasis) -> Iterator[BeyondProfile]:
    for name in basis[WITHOUT_PROFILE]:
        roles = basis.deployments[name]
        reason = why_unknown(roles) if roles[0].traffic.states_rate else _NO_RATE
        if reason and reason != NO_PROFILE:
            yield BeyondProfile(name, reason)


def unknown_speeds(summary: PlanSummary) -> Iterator[tuple[str, str]]:
    """Yield why speeds are unknown, as a clause, with the names of the deployments."""
    beyond = summary[BEYOND_PROFILE]
    names = [name for name in summary[WITHOUT_PROFILE] if name not in {each.deployment for each in beyond}]
    if names:
        yield NO_PROFILE, few(names, ", ")
    yield from ((each.reason, each.deployment) for each in beyond)


def _without_profile(basis: PlanBasis) -> Iterator[str]:
    priced = {f"{price.model}/{price.deployment}" for price in basis[TOKEN_PRICES]}
    return (name for name in _of_tasks(basis, "generate") if name not in priced)


def _token_price(
    roles: Sequence[ResolvedWorkers], pools: Sequence[PoolSummary], processes: Sequence[ProcessSummary]
) -> TokenPrice | None:
    """Return the prices of a deployment's tokens; None if the rate that it serves is unknown.

    A load balancer divides the peak of the model among its deployments, in proportion to their accelerators.
    If the workers can serve less than that, the price is based on what they can serve: the slower of prefill
    and decode.
    """
    capacities = [role_capacity(resolved) for resolved in roles]
    known = [capacity for capacity in capacities if capacity]
    if len(known) < len(capacities):
        return None
    writing = known[-1]  # decode, or both phases
    resolved = roles[-1]
    if not resolved.traffic.states_rate:
        return None
    workload = resolved.traffic.means
    rate = served_requests_per_second(known)
    if rate is None:
        return None
    full = full_requests_per_second(known)
    _, usd = share_of({(resolved.model.name, resolved.deployment.name)}, pools, processes)
    both = workload.input_tokens + workload.output_tokens
    return TokenPrice(
        model=resolved.model.name,
        deployment=resolved.deployment.name,
        requests_per_second=rate,
        peak_requests_per_second=resolved.traffic.requests_per_second,
        concurrent_requests=writing.concurrent_requests,
        time_per_output_token_ms=writing.time_per_output_token_ms,
        usd_per_million_tokens=_per_million(usd, rate * both),
        usd_per_million_output_tokens=_per_million(usd, rate * workload.output_tokens),
        usd_per_million_tokens_full=None if full is None else _per_million(usd, full * both),
        counts_all_lengths=all(way.longest_input_tokens is not None for way in parts(workload)),
    )


def _per_million(usd_per_hour: float | None, tokens_per_second: float) -> float | None:
    if usd_per_hour is None:
        return None
    return usd_per_hour / SECONDS_PER_HOUR / tokens_per_second * MILLION


def token_prices(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Price of tokens (simulated)",
        ("deployment",),
        (
            "requests per second, served of peak",
            "time per output token, ms",
            "USD per million tokens",
            "USD per million output tokens",
            "USD per million tokens, full load",
        ),
        tuple(map(_token_price_row, summary[TOKEN_PRICES])),
        tuple(_token_notes(summary[TOKEN_PRICES])),
    )


def _token_price_row(price: TokenPrice) -> tuple[str, ...]:
    return (
        f"{price.model}/{price.deployment}",
        f"{number(price.requests_per_second)} of {number(price.peak_requests_per_second)}",
        f"{price.time_per_output_token_ms:.1f}" if price.time_per_output_token_ms else "-",
        usd(price.usd_per_million_tokens),
        usd(price.usd_per_million_output_tokens),
        usd(price.usd_per_million_tokens_full),
    )


def _token_notes(prices: Sequence[TokenPrice]) -> Iterable[str]:
    yield (
        "Simulated: the price of the used nodes divided by the tokens served at the stated peak. The "
        "load that "
        "the workers can serve follows from the model's latency profile. The price of output tokens charges "
        "the whole cost to output."
    )
    alike = [f"{each.model}/{each.deployment}" for each in prices if not each.counts_all_lengths]
    if alike:
        yield (
            f"{few(alike, ', ')}: without 'max' of inputTokens, every prompt counts as long as the mean, "
            "although long ones take longer than in proportion."
        )
    yield from _not_carried(prices)


def _not_carried(prices: Sequence[TokenPrice]) -> Iterator[str]:
    """Yield a sentence for each deployment that serves less than the stated load."""
    for price in prices:
        if not price.carries_the_peak:
            yield (
                f"{price.model}/{price.deployment} serves {number(price.requests_per_second)} of the "
                f"{number(price.peak_requests_per_second)} requests per second at peak (simulated). The "
                "price is for the served requests. Add replicas."
            )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield load and price of each deployment, and a warning if it serves less than the stated load."""
    prices = summary[TOKEN_PRICES]
    if not prices:
        return
    are_several = len(prices) + len(summary[WITHOUT_PROFILE]) > 1
    names = [f"{each.model}/{each.deployment}: " if are_several else "" for each in prices]
    yield (
        Label.CARRIES,
        few(
            f"{name}{number(each.requests_per_second)} of {number(each.peak_requests_per_second)} requests/s "
            f"at the peak{_each_token(each)} (simulated)"
            for name, each in zip(names, prices, strict=True)
        ),
    )
    yield (
        Label.PRICE,
        few(f"{name}{_price_in_short(each)}" for name, each in zip(names, prices, strict=True)),
    )
    for sentence in _not_carried(prices):
        yield Label.WARNINGS, sentence


def _each_token(price: TokenPrice) -> str:
    """Return the time per output token as a clause; empty for answers of one token."""
    each = price.time_per_output_token_ms
    return f", {each:.0f} ms per output token" if each else ""


def _price_in_short(price: TokenPrice) -> str:
    if price.usd_per_million_tokens is None:
        return "of tokens unknown, because that of the nodes is"
    return (
        f"{usd(price.usd_per_million_tokens)} USD per million tokens, "
        f"{usd(price.usd_per_million_tokens_full)} at full load (simulated)"
    )


def _unknown_in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    for reason, names in unknown_speeds(summary):
        yield Label.CARRIES, f"unknown for {names}: {reason}"


def _embedding_in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    if names := summary[EMBEDDING]:
        yield (
            Label.CARRIES,
            f"embeddings or scores by {few(names, ', ')}: measure how many replicas the peak needs",
        )


TOKEN_PRICES = PlanSection(
    "tokenPrices", lambda basis: tuple(_token_prices(basis)), _in_short, (token_prices,)
)
#: Deployments that write text and have no latency profile that covers their mean request, as
#: ``model/deployment``.
WITHOUT_PROFILE = PlanSection(
    "withoutProfile", lambda basis: tuple(_without_profile(basis)), _unknown_in_short
)
#: Those of them that have a profile, which ends before their mean request.
BEYOND_PROFILE = PlanSection("beyondProfile", lambda basis: tuple(_beyond_profile(basis)), in_tables_only)
#: Deployments of embedding and reranking models, which have no price of tokens, as ``model/deployment``.
EMBEDDING = PlanSection("embedding", lambda basis: _of_tasks(basis, "embed", "rerank"), _embedding_in_short)
