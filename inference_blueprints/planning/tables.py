"""The plan as tables in a terminal; plain text where the output is not one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inference_blueprints.planning.types import (
    MemorySummary,
    PlanSummary,
    PoolSummary,
    ProcessSummary,
    Totals,
)

_GIB = 1024**3
_MEMORY_NOTE = (
    "engine: activations, contexts and graphs; requests: of the workload's mean length, at once in a worker."
)


def print_plan(summary: PlanSummary, console: Console) -> None:
    """Print a summary.

    Parameters
    ----------
    summary
        What `summarise` returned.
    console
        Where to; names fold at its width, figures never do, and colours appear only in a terminal.
    """
    console.print(Text(f"{summary.name} in {summary.region}", style="bold"))
    console.print(
        _table(
            ("pool", "instance types"),
            ("nodes", "devices", "USD/h", "USD/h at most"),
            [*map(_pool_row, summary.pools), _total_row(summary.totals)],
        )
    )
    console.print(
        _table(("process", "pool"), ("count", "devices each"), map(_process_row, summary.processes))
    )
    console.print(
        _table(
            ("GiB of a device",),
            ("memory", "weights", "engine", "KV cache", "KV tokens", "requests"),
            map(_memory_row, summary.memory),
        )
    )
    for line in _notes(summary):
        console.print(Text(line))


def _table(names: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Lay rows out under two kinds of columns: names fold, figures are right-aligned and stay whole."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


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


def _process_row(process: ProcessSummary) -> tuple[str, ...]:
    return (
        f"{process.model}/{process.deployment}/{process.name}",
        process.pool or "system nodes",
        str(process.replicas),
        str(process.accelerators or "-"),
    )


def _memory_row(memory: MemorySummary) -> tuple[str, ...]:
    return (
        f"{memory.model}/{memory.deployment}",
        _gib(memory.accelerator_bytes),
        _gib(memory.weights_bytes),
        _gib(memory.activation_bytes + memory.reserved_bytes),
        _gib(memory.kv_cache_bytes),
        f"{memory.kv_cache_tokens:,}",
        f"{memory.concurrent_requests:,}",
    )


def _notes(summary: PlanSummary) -> list[str]:
    """Say what the columns mean, where the prices come from and what they leave out."""
    notes = [_MEMORY_NOTE, summary.prices.note]
    unpriced = sorted({*summary.totals.without_used, *summary.totals.without_max})
    if unpriced:
        notes.append(f"The price is unknown for {', '.join(unpriced)}; the totals are without it.")
    if any(pool.purchase == "spot" for pool in summary.pools):
        notes.append("Spot capacity costs less than shown: its price changes and is not in the table.")
    return [*notes, f"Not included: {', '.join(summary.prices.not_included)}."]


def _price(usd_per_hour: float | None) -> str:
    return "unknown" if usd_per_hour is None else f"{usd_per_hour:,.2f}"


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f}"
