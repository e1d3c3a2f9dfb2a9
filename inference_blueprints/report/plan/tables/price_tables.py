"""Price tables of the plan: tokens, workers of batch, and the signal store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inference_blueprints.report.figures import BatchWorkersSummary, PlanSummary, SignalStorePrice, TokenPrice
from inference_blueprints.report.plan.tables.cells import usd
from inference_blueprints.report.tables.text_table import TextTable

_PLACES = {"eks": "pods on system nodes", "ecs": "AWS Fargate tasks"}


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
        tuple(map(_token_price_row, summary.token_prices)),
        tuple(_token_notes(summary.token_prices)),
    )


def _token_price_row(price: TokenPrice) -> tuple[str, ...]:
    return (
        f"{price.model}/{price.deployment}",
        f"{price.requests_per_second:.3g} of {price.peak_requests_per_second:.3g}",
        f"{price.time_per_output_token_ms:.1f}",
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
    for price in prices:
        if not price.carries_the_peak:
            yield (
                f"{price.model}/{price.deployment} serves {price.requests_per_second:.3g} of the "
                f"{price.peak_requests_per_second:.3g} requests per second at peak (simulated). The "
                "price is for "
                "the served requests."
            )


def batch_workers(summary: PlanSummary) -> TextTable:
    """Return the table of batch workers, which has a row if the blueprint has batch."""
    workers = summary.batch_workers
    note = (
        "Not in the totals. On-demand prices of us-east-1; Fargate Spot is cheaper."
        if workers and workers.place == "ecs"
        else "If the system nodes have no room for all workers, Karpenter adds nodes."
    )
    return TextTable(
        "Batch workers",
        ("runs on",),
        (
            "workers",
            "vCPUs per worker",
            "memory per worker, GiB",
            "USD per hour, minimum",
            "USD per hour, maximum",
        ),
        () if workers is None else (_worker_row(workers),),
        (note,),
    )


def _worker_row(workers: BatchWorkersSummary) -> tuple[str, ...]:
    return (
        _PLACES[workers.place],
        f"{workers.workers_min} to {workers.workers_max}",
        str(workers.vcpu),
        str(workers.memory_gib),
        _usd_or_dash(workers.usd_per_hour_min),
        _usd_or_dash(workers.usd_per_hour_max),
    )


def _usd_or_dash(price: float | None) -> str:
    return "-" if price is None else f"{price:.2f}"


def signal_store(summary: PlanSummary) -> TextTable:
    """Return the table of the signal store, which has a row if the blueprint has one."""
    price = summary.signal_store
    rows = () if price is None else (_signal_store_row(price),)
    return TextTable(
        "Signal store",
        ("store",),
        ("maximum size, GB", "USD per hour, empty", "USD per hour, full", "USD per million KB"),
        rows,
        (
            "Not in the totals. Prices of us-east-1: per GB stored and hour, and per KB read or "
            "written. A write "
            "that runs a script can count as more.",
        ),
    )


def _signal_store_row(price: SignalStorePrice) -> tuple[str, ...]:
    return (
        "Valkey",
        f"{price.max_gb:,}",
        f"{price.usd_per_hour_min:.4f}",
        f"{price.usd_per_hour_max:,.2f}",
        f"{price.usd_per_million_kb:.4f}",
    )
