"""The plan as rows of text, for the terminal and for the page: one wording for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from inference_blueprints.catalog.image_cache import INITIALIZATION_MIB_PER_SECOND
from inference_blueprints.planning.batch_rows import batch_days, service_quotas
from inference_blueprints.planning.batch_worker_price import batch_workers
from inference_blueprints.planning.plan_table import PlanTable
from inference_blueprints.planning.signal_store_price import signal_store
from inference_blueprints.planning.types import (
    ColdStart,
    MemorySummary,
    PlanSummary,
    PodFit,
    PoolAddresses,
    PoolSummary,
    ProcessSummary,
    QuotaNeed,
    TokenPrice,
    Totals,
)

_GIB = 1024**3
_GB = 1e9
_UNKNOWN = "unknown"


def plan_tables(summary: PlanSummary) -> list[PlanTable]:
    """Return the tables that have rows, in the order in which they are read.

    Parameters
    ----------
    summary
        What `summarise` returned.
    """
    builders: Sequence[Callable[[PlanSummary], PlanTable]] = (
        _pools,
        _processes,
        _memory,
        _host_caches,
        _fits,
        _token_prices,
        _cold_starts,
        _quotas,
        batch_days,
        service_quotas,
        batch_workers,
        signal_store,
        _addresses,
    )
    return [table for builder in builders if (table := builder(summary)).rows]


def plan_notes(summary: PlanSummary) -> list[str]:
    """Say where the prices come from, what they leave out and what is left out altogether.

    Parameters
    ----------
    summary
        What `summarise` returned.
    """
    notes = [summary.prices.note]
    unpriced = sorted({*summary.totals.without_used, *summary.totals.without_max})
    if unpriced:
        notes.append(
            f"The price is unknown for {', '.join(unpriced)}; the totals are without it. "
            "`--rates` takes yours."
        )
    purchases = {pool.purchase for pool in summary.pools}
    if "spot" in purchases:
        notes.append(
            "Spot capacity has a price of its own, which changes; it is taken from your rates alone."
        )
    if "reservation" in purchases:
        notes.append("A reservation is billed by the hour for its size, whether its instances run or not.")
    if "capacityBlock" in purchases:
        notes.append("A Capacity Block is paid in advance at its offer's price.")
    if summary.without_profile:
        names = ", ".join(summary.without_profile)
        notes.append(f"No price of tokens for {names}: the catalogue has no latency profile of it.")
    return [*notes, f"Not included: {', '.join(summary.prices.not_included)}."]


def _pools(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Pools",
        ("pool", "instance types"),
        ("nodes", "devices", "USD/h", "USD/h at most"),
        (*map(_pool_row, summary.pools), _total_row(summary.totals)),
    )


def _pool_row(pool: PoolSummary) -> tuple[str, ...]:
    purchase = "" if pool.purchase == "onDemand" else f" ({pool.purchase})"
    kind = f" {pool.accelerator}" if pool.accelerator else ""
    return (
        pool.name,
        ", ".join(pool.instance_types) + purchase,
        f"{pool.nodes_used} of {pool.nodes_max}",
        f"{pool.accelerators_used} of {pool.accelerators_max}{kind}",
        _price(pool.usd_per_hour_used),
        _price(pool.usd_per_hour_max),
    )


def _total_row(totals: Totals) -> tuple[str, ...]:
    return (
        "total",
        "",
        f"{totals.nodes_used} of {totals.nodes_max}",
        f"{totals.accelerators_used} of {totals.accelerators_max}",
        _price(totals.usd_per_hour_used),
        _price(totals.usd_per_hour_max),
    )


def _processes(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Processes",
        ("process", "pool"),
        ("count", "devices each"),
        tuple(map(_process_row, summary.processes)),
    )


def _process_row(process: ProcessSummary) -> tuple[str, ...]:
    return (
        f"{process.model}/{process.deployment}/{process.name}",
        process.pool or "system nodes",
        str(process.replicas),
        _devices(process),
    )


def _devices(process: ProcessSummary) -> str:
    devices = str(process.accelerators or "-")
    return f"{devices} on {process.nodes} nodes" if process.nodes > 1 else devices


def _memory(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Memory of a device",
        ("GiB a device",),
        ("memory", "weights", "engine", "KV", "KiB", "KV tokens", "at once"),
        tuple(map(_memory_row, summary.memory)),
        (
            "engine: activations, contexts and graphs; KV: what is left for the cache; KiB: of it for a "
            "token; at once: requests of the workload's mean length in a worker.",
        ),
    )


def _memory_row(memory: MemorySummary) -> tuple[str, ...]:
    return (
        f"{memory.model}/{memory.deployment}",
        _gib(memory.accelerator_bytes),
        _gib(memory.weights_bytes),
        _gib(memory.activation_bytes + memory.reserved_bytes),
        _gib(memory.kv_cache_bytes),
        f"{memory.kv_bytes_per_token / 1024:.4g}",
        f"{memory.kv_cache_tokens:,}",
        f"{memory.concurrent_requests:,}",
    )


def _host_caches(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "KV cache beside the devices",
        ("tokens a worker keeps",),
        ("on devices", "in memory", "on NVMe", "USD a million in S3"),
        tuple(_host_cache_row(memory) for memory in summary.memory if memory.host_kv_tokens),
        (
            "Each place has copies of what prompts left in the one before, and keeps them for longer. S3: a "
            "million tokens written once and kept until they expire, us-east-1.",
        ),
    )


def _host_cache_row(memory: MemorySummary) -> tuple[str, ...]:
    return (
        f"{memory.model}/{memory.deployment}",
        f"{memory.kv_cache_tokens:,}",
        f"{memory.host_kv_tokens:,}",
        f"{memory.nvme_kv_tokens:,}" if memory.nvme_kv_tokens else "-",
        "-" if memory.shared_kv_usd is None else f"{memory.shared_kv_usd:.2f}",
    )


def _fits(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Workers on a node",
        ("workers of", "on"),
        ("a node", "stopped by", "stranded"),
        tuple(map(_fit_row, summary.fits)),
        tuple(_stranded(summary.fits)),
    )


def _fit_row(fit: PodFit) -> tuple[str, ...]:
    return (
        f"{fit.model}/{fit.deployment}",
        fit.instance_type,
        str(fit.workers_per_node),
        fit.limited_by,
        str(fit.stranded_devices or "-"),
    )


def _stranded(fits: Iterable[PodFit]) -> Iterable[str]:
    for fit in fits:
        if fit.stranded_devices:
            yield (
                f"{fit.stranded_devices} devices of each {fit.instance_type} stay without a worker of "
                f"{fit.model}/{fit.deployment}: the node has too few {fit.limited_by} for it."
            )


def _token_prices(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Price of tokens (simulated)",
        ("USD per million tokens (simulated)",),
        ("requests/s", "ms/token", "all", "output", "all, at full load"),
        tuple(map(_token_price_row, summary.token_prices)),
        tuple(_token_notes(summary.token_prices)),
    )


def _token_price_row(price: TokenPrice) -> tuple[str, ...]:
    return (
        f"{price.model}/{price.deployment}",
        f"{price.requests_per_second:.3g} of {price.peak_requests_per_second:.3g}",
        f"{price.time_per_output_token_ms:.1f}",
        _price(price.usd_per_million_tokens),
        _price(price.usd_per_million_output_tokens),
        _price(price.usd_per_million_tokens_full),
    )


def _token_notes(prices: Sequence[TokenPrice]) -> Iterable[str]:
    yield (
        "Simulated: the used nodes' price over the tokens of the stated peak; what the workers carry is "
        "computed from the model's latency profile. output: if output carries all."
    )
    for price in prices:
        if not price.carries_the_peak:
            yield (
                f"{price.model}/{price.deployment} carries {price.requests_per_second:.3g} of the "
                f"{price.peak_requests_per_second:.3g} requests a second at its peak (simulated); the price "
                "is that of what it carries."
            )


def _cold_starts(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Cold start of a new node, at the least",
        ("cold start at the least",),
        ("launch", "image", "weights", "loaded in"),
        tuple(map(_cold_start_row, summary.cold_starts)),
        tuple(_cold_start_notes(summary.cold_starts)),
    )


def _cold_start_row(start: ColdStart) -> tuple[str, ...]:
    return (
        f"{start.model}/{start.deployment}, {start.workers_on_the_node} on {start.instance_type}, "
        f"{start.weights_from}",
        _UNKNOWN if start.launch_seconds is None else f"{start.launch_seconds:.0f} s",
        f"{start.image_seconds_per_gb:.2f} s/GB"
        if start.image_seconds is None
        else f"{start.image_seconds:.0f} s",
        f"{start.weights_bytes / _GB:.1f} GB",
        f"{start.weights_seconds:.0f} s",
    )


def _cold_start_notes(starts: Sequence[ColdStart]) -> Iterable[str]:
    yield (
        "Bytes over the node's first network card and EBS; the Hub, NAT gateways, NVMe and the engine's own "
        "start come on top. Workers that start together on a node share its network."
    )
    if any(start.image_from == "snapshot" for start in starts):
        yield (
            f"From a snapshot an image comes unpacked, at {INITIALIZATION_MIB_PER_SECOND} MiB/s at the most; "
            "the engine starts before all of it is there, and waits for what it reads."
        )
    for start in starts:
        yield f"Longest for {start.model}/{start.deployment}: {start.dominated_by}."


def _quotas(summary: PlanSummary) -> PlanTable:
    return PlanTable(
        "Service quotas",
        ("EC2 quota", "code"),
        ("vCPUs", "at most"),
        tuple(map(_quota_row, summary.quotas)),
        ("Of the region, in Service Quotas; for new accounts those of accelerators are usually 0.",),
    )


def _quota_row(need: QuotaNeed) -> tuple[str, ...]:
    name = need.name or f"{_UNKNOWN} ({need.purchase})"
    return (
        f"{name}: {', '.join(need.pools)}",
        need.code or _UNKNOWN,
        f"{need.vcpu_used:,}",
        f"{need.vcpu_max:,}",
    )


def _addresses(summary: PlanSummary) -> PlanTable:
    use = summary.addresses
    left = f"{use.zones} subnets with {use.addresses_in_a_zone:,} addresses for nodes"
    shared = f"{use.addresses_in_a_zone:,} addresses a zone at the most, for its subnets are not known"
    return PlanTable(
        "IPv4 addresses",
        ("IPv4 addresses",),
        ("pods", "/28", "interfaces", "a node", "nodes", "fit a subnet"),
        tuple(map(_address_row, use.pools)),
        (
            f"{use.cidr}: {left if use.is_exact else shared}; all nodes at the most take {use.needed:,} of "
            f"{use.available:,}.",
        ),
    )


def _address_row(pool: PoolAddresses) -> tuple[str, ...]:
    return (
        pool.pool,
        str(pool.pods),
        str(pool.prefixes),
        str(pool.interfaces),
        str(pool.addresses_per_node),
        f"{pool.nodes_max:,}",
        f"{pool.nodes_in_a_subnet:,}",
    )


def _price(usd: float | None) -> str:
    return _UNKNOWN if usd is None else f"{usd:,.2f}"


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f}"
