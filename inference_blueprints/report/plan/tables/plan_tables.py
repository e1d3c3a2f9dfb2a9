"""The plan as rows of text, for the terminal and for the page: one wording for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inference_blueprints.report.figures import PlanSummary
from inference_blueprints.report.plan.tables import (
    batch_tables,
    compilation_table,
    edge_table,
    frontend_table,
    image_speed_table,
    limit_tables,
    month_table,
    node_tables,
    objective_table,
    price_tables,
    repair_table,
    scaling_table,
    shift_table,
    streaming_tables,
)
from inference_blueprints.report.tables.text_table import TextTable


def plan_tables(summary: PlanSummary) -> list[TextTable]:
    """Return the tables that have rows, in reading order."""
    builders: Sequence[Callable[[PlanSummary], TextTable]] = (
        node_tables.pools,
        node_tables.node_images,
        month_table.month,
        node_tables.processes,
        scaling_table.elastic_workers,
        shift_table.capacity_shift,
        frontend_table.frontends,
        edge_table.real_time,
        node_tables.memory,
        node_tables.host_caches,
        node_tables.fits,
        price_tables.token_prices,
        image_speed_table.images,
        objective_table.objectives,
        node_tables.cold_starts,
        compilation_table.compilations,
        limit_tables.ec2_quotas,
        batch_tables.batch_days,
        batch_tables.service_quotas,
        streaming_tables.streaming_jobs,
        streaming_tables.kafka_brokers,
        price_tables.batch_workers,
        price_tables.signal_store,
        repair_table.repairs,
        limit_tables.addresses,
    )
    return [table for builder in builders if (table := builder(summary)).rows]


def plan_notes(summary: PlanSummary) -> list[str]:
    """Return notes on the source of the prices, and on what the plan leaves out."""
    notes = [summary.prices.note]
    unpriced = sorted({*summary.totals.without_used, *summary.totals.without_max})
    if unpriced:
        notes.append(
            f"The price is unknown for {', '.join(unpriced)}. Sums with it say 'at most' or 'at least'. Pass "
            "your price with `--rates`."
        )
    purchases = {pool.purchase for pool in summary.pools}
    if "spot" in purchases:
        notes.append("Spot prices change, and are at most the on-demand price. Pass yours with `--rates`.")
    if "reservation" in purchases:
        notes.append(
            "A reservation is billed at the on-demand rate for its size, whether its instances run or "
            "not. Its size is not in the blueprint."
        )
    if "capacityBlock" in purchases:
        notes.append("You pay for a Capacity Block in advance, at the price of its offer.")
    if summary.without_profile:
        names = ", ".join(summary.without_profile)
        notes.append(f"No token price for {names}: the catalogue has no latency profile for it.")
    if summary.embedding:
        names = ", ".join(summary.embedding)
        notes.append(
            f"{names} computes embeddings (`/v1/embeddings`) and writes no text, so there is no price of "
            "tokens and no measured speed: measure how many replicas the peak needs."
        )
    return [*notes, 'Prices per hour are those of the pools\' nodes. "Cost of a month" adds the other parts.']
