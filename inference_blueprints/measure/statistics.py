"""Statistics of measured requests: percentiles, throughput, price, and their texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from inference_blueprints.measure.completions.completion_client import RequestOutcome, TokenUsage
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.pools import POOLS, PRICES
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.pricing.rates import share_of
from inference_blueprints.spec.types import LatencyKind, PercentileOf
from inference_contracts.records import dataclass
from inference_contracts.units import MILLION, SECONDS_PER_HOUR


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile by linear interpolation between the closest ranks.

    values: Observations in any order.
    Returns: None if there are no values. Method 7 of Hyndman and Fan, "Sample Quantiles in Statistical
        Packages" (1996), the default of numpy and R.
    """
    if not values:
        return None
    ordered = sorted(values)
    rank = percent / 100 * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


@dataclass(frozen=True, slots=True)
class ServingCapacity:
    """The accelerators of some models, and their cost."""

    accelerators: float
    """Number of accelerators of their workers; a mean if the workers followed the load."""
    usd_per_hour: float | None
    """Their share of the price of the used nodes. None if the price of a pool is unknown."""
    price_note: str
    """Kind of the price, with its date, source and region."""
    at_most: int | None = None
    """Largest number of accelerators of elastic workers. None if their number is fixed."""

    def without(self, unused: float) -> ServingCapacity:
        """Return what elastic workers held.

        unused: Accelerators of the largest number of workers that no worker held, on average.
        """
        share = 1 - unused / self.accelerators
        return replace(
            self,
            accelerators=self.accelerators - unused,
            usd_per_hour=None if self.usd_per_hour is None else self.usd_per_hour * share,
            at_most=round(self.accelerators),
        )


def capacity_of(models: Collection[str], summary: PlanSummary) -> ServingCapacity:
    """Return what serves some of a plan's models.

    summary: The plan in figures.
    Returns: Over all pools.
    """
    deployments = {
        (process.model, process.deployment) for process in summary[PROCESSES] if process.model in models
    }
    accelerators, usd_per_hour = share_of(deployments, summary[POOLS], summary[PROCESSES])
    return ServingCapacity(accelerators, usd_per_hour, summary[PRICES].note)


_NO_PROFILE = (
    "Left out: the catalogue has no latency profile of this model on this accelerator, "
    "and the simulated engine's default speed matches no accelerator."
)
_ONLY_IMAGES = "Left out: the answers are images, which are not priced by tokens."
_NO_TIMES = "Left out: a small model with random weights ran on processors, so times mean nothing."


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of one latency in milliseconds. None if nothing was measured."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class PerTokens:
    """A figure for all tokens, and for output tokens only."""

    input_and_output: float
    """Prompt tokens, including cached ones, and output tokens."""
    output: float
    """Only output tokens. In a price, they carry the whole cost."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of the requests of one model, or of all models together."""

    requests: int
    failures: int
    failure_reasons: Mapping[str, int]
    """`requests`, `failures`, `failure_reasons`: Number of requests, of those without a complete answer, and
    these per reason."""
    ttft_ms: Percentiles
    time_per_output_token_ms: Percentiles
    end_to_end_ms: Percentiles
    """`ttft_ms`, `time_per_output_token_ms`, `end_to_end_ms`: Latencies of the answered requests, in
    milliseconds."""
    prefix_cache_hit_ratio: float | None
    """Cached tokens divided by all prompt tokens of the answered requests. None if the endpoint does not
    report them."""
    throughput_per_gpu_tokens_per_second: PerTokens | None
    """Tokens per second and accelerator at the replayed load, which is not the maximum."""
    price_per_million_tokens_usd: PerTokens | None
    """Cost of the used nodes divided by the tokens served at the replayed load."""
    cost_note: str
    """Basis of the two figures, or why they are left out."""
    images: int = 0
    """Images in the answers."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The basis of throughput and price."""

    elapsed_seconds: float
    """Length of the replay."""
    capacity: ServingCapacity
    """The accelerators, and their price."""
    simulated: bool
    """Whether the engines were simulated."""
    profiled: bool
    """Whether all simulated latencies come from a profile of the plan's model and accelerator."""
    timed: bool = True
    """Whether the times of answers say something about the planned hardware."""


def measure(outcomes: Sequence[RequestOutcome], basis: Basis) -> Measurement:
    """Compute figures from outcomes.

    outcomes: Outcomes of one or more models.
    basis: The basis of throughput and price.
    Returns: A figure that cannot be computed is None.
    """
    answered = [outcome for outcome in outcomes if outcome.failure is None]
    timed = answered if basis.timed else []
    usages = [outcome.usage for outcome in answered if outcome.usage is not None]
    throughput, price, note = _cost(answered, basis)
    return Measurement(
        requests=len(outcomes),
        failures=len(outcomes) - len(answered),
        failure_reasons=dict(
            Counter(outcome.failure for outcome in outcomes if outcome.failure).most_common()
        ),
        ttft_ms=percentiles(outcome.time_to_first_token_ms for outcome in timed),
        time_per_output_token_ms=percentiles(outcome.time_per_output_token_ms for outcome in timed),
        end_to_end_ms=percentiles(outcome.end_to_end_ms for outcome in timed),
        prefix_cache_hit_ratio=_hit_ratio(usages),
        throughput_per_gpu_tokens_per_second=throughput,
        price_per_million_tokens_usd=price,
        cost_note=note,
        images=sum(outcome.images for outcome in answered),
    )


def percentiles(values: Iterable[float | None]) -> Percentiles:
    """Return the 50th, 90th, 95th and 99th percentile of the values.

    values: Milliseconds. None values are left out.
    """
    known = [value for value in values if value is not None]
    return Percentiles(*(percentile(known, each) for each in (50, 90, 95, 99)))


def percentile_of(outcomes: Sequence[RequestOutcome]) -> PercentileOf:
    """Return a function for percentiles of the answered requests, for `judge`."""
    answered = [outcome for outcome in outcomes if outcome.failure is None]
    values: dict[LatencyKind, list[float | None]] = {
        "timeToFirstTokenMs": [outcome.time_to_first_token_ms for outcome in answered],
        "timePerOutputTokenMs": [outcome.time_per_output_token_ms for outcome in answered],
        "requestMs": [outcome.end_to_end_ms for outcome in answered],
    }

    def of(kind: LatencyKind, percent: float) -> float | None:
        return percentile([value for value in values[kind] if value is not None], percent)

    return of


def _hit_ratio(usages: Sequence[TokenUsage]) -> float | None:
    """Return cached tokens divided by all prompt tokens."""
    told = [(usage.cached_tokens, usage.prompt_tokens) for usage in usages if usage.cached_tokens is not None]
    prompts = sum(prompt for _, prompt in told)
    return sum(cached for cached, _ in told) / prompts if prompts else None


def _cost(answered: Sequence[RequestOutcome], basis: Basis) -> tuple[PerTokens | None, PerTokens | None, str]:
    """Return throughput, price, and their basis or why they are left out."""
    usages = [outcome.usage for outcome in answered if outcome.usage is not None]
    if not basis.timed:
        return None, None, _NO_TIMES
    if not usages and any(outcome.images for outcome in answered):
        return None, None, _ONLY_IMAGES
    if basis.simulated and not basis.profiled:
        return None, None, _NO_PROFILE
    output = sum(usage.completion_tokens for usage in usages)
    both = output + sum(usage.prompt_tokens for usage in usages)
    accelerators, usd_per_hour = basis.capacity.accelerators, basis.capacity.usd_per_hour
    if not output or not accelerators:
        return None, None, "Left out: no tokens were counted, or the plan has no accelerators."
    per_gpu = basis.elapsed_seconds * accelerators
    throughput = PerTokens(both / per_gpu, output / per_gpu)
    at_most = basis.capacity.at_most
    load = (
        f"At the replayed load, which is not the maximum of {accelerators} accelerators"
        if at_most is None
        else f"Elastic workers held {accelerators:.1f} of {at_most} accelerators on average"
    )
    note = f"{load}: tokens of the answered requests over {basis.elapsed_seconds:.0f} s."
    if usd_per_hour is None:
        return throughput, None, f"{note} No price: the price of a pool's instances is unknown."
    usd = usd_per_hour * basis.elapsed_seconds / SECONDS_PER_HOUR * MILLION
    nodes = "The used nodes cost" if at_most is None else "On average, their nodes cost"
    note = f"{note} {nodes} {usd_per_hour:.2f} USD per hour. {basis.capacity.price_note}"
    return throughput, PerTokens(usd / both, usd / output), note


# Measured figures as text for terminals and HTML pages.

NOT_MEASURED = "-"


def milliseconds(value: float | None) -> str:
    """Return a latency in milliseconds with at least three digits. A dash if nothing was measured."""
    return NOT_MEASURED if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004


def latency_rows(measurement: Measurement) -> list[tuple[str, Percentiles]]:
    """Return the latencies with their names. Images have no tokens."""
    of_tokens = [
        ("time to first token", measurement.ttft_ms),
        ("time per output token", measurement.time_per_output_token_ms),
    ]
    return [*([] if measurement.images else of_tokens), ("end to end", measurement.end_to_end_ms)]


def amount(count: int, noun: str) -> str:
    """Return such as ``1 request`` or ``1,512 requests``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def hit_ratio(measurement: Measurement) -> str:
    """Return the share of prompt tokens that were in the KV cache."""
    ratio = measurement.prefix_cache_hit_ratio
    return "not reported by the endpoint" if ratio is None else f"{ratio:.1%} of the prompt tokens"
