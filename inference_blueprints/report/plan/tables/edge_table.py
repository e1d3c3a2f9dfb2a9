"""Large peaks in the plan's tables: frontends, connections, load balancer, and traffic between zones."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.report.figures import EdgeSummary, PlanSummary
from inference_blueprints.report.plan.tables.cells import UNKNOWN, usd
from inference_blueprints.report.tables.text_table import TextTable

EDGE_FIGURES = (
    "requests per second",
    "requests per second and vCPU",
    "vCPUs of frontends",
    "connections",
    "load balancer units",
    "between zones, GB per day",
    "USD per day",
)


def real_time(summary: PlanSummary) -> TextTable:
    """Return the table of models with a large peak."""
    return TextTable(
        "Real time at a large peak",
        ("model",),
        EDGE_FIGURES,
        tuple((each.model, *edge_cells(each)) for each in summary.edges),
        tuple(_notes(summary.edges)),
    )


def edge_cells(edge: EdgeSummary) -> tuple[str, ...]:
    """Return the figures of a model.

    Parameters
    ----------
    edge
        The model's edge.
    """
    parts = (edge.frontend_usd_per_day, edge.balancer_usd_per_day, edge.cross_zone_usd_per_day)
    known = [each for each in parts if each is not None]
    return (
        f"{edge.requests_per_second:,.0f}",
        f"{edge.requests_per_second_per_core:,.0f}",
        f"{edge.frontend_cpu:,}",
        f"{edge.connections:,.0f}",
        f"{edge.balancer_units:,.1f}",
        f"{edge.cross_zone_gb_per_day:,.0f}",
        usd(sum(known)) if len(known) == len(parts) else UNKNOWN,
    )


def edge_sentences(edge: EdgeSummary) -> Iterator[str]:
    """Yield what follows from the figures of a model.

    Parameters
    ----------
    edge
        The model's edge.
    """
    yield (
        f"{edge.model}: connections = {edge.requests_per_second:,.0f}/s x {edge.seconds_per_request:.3g} s = "
        f"{edge.connections:,.0f} with one request at a time on each (Little's law). Load balancer units "
        f"(LCU): {edge.active_connection_units:,.1f} for active connections, {edge.byte_units:,.1f} for "
        f"{edge.bytes_per_request:,.0f} bytes per request, {edge.new_connection_units:,.2f} for new "
        f"connections, {edge.rule_units:,.1f} for rules; the largest is billed."
    )
    frontends = UNKNOWN if edge.frontend_usd_per_day is None else f"{usd(edge.frontend_usd_per_day)} USD"
    yield (
        f"{edge.model}: per day, frontends cost {frontends}, the load balancer "
        f"{usd(edge.balancer_usd_per_day)} USD (a Network Load Balancer: "
        f"{edge.network_balancer_units:,.1f} units, {usd(edge.network_balancer_usd_per_day)} USD), and "
        f"traffic between zones {usd(edge.cross_zone_usd_per_day)} USD."
    )
    if edge.frontend_nodes > edge.most_frontend_nodes:
        yield (
            f"{edge.model}: the frontends fill {edge.frontend_nodes:,} nodes of 16 vCPUs, and a platform "
            f"starts at most {edge.most_frontend_nodes} for routers. Divide the traffic among "
            f"{-(-edge.frontend_nodes // edge.most_frontend_nodes)} platforms."
        )
    yield _placement(edge)


def _placement(edge: EdgeSummary) -> str:
    """Say whether workers and frontends of one zone each save more than they cost."""
    if edge.is_zonal:
        return (
            f"{edge.model}: each deployment has its workers in one zone, and its frontends prefer that "
            "zone, so no traffic between zones is counted."
        )
    saved = (
        f"{edge.model}: a deployment per zone, on a pool with `availabilityZone`, saves up to "
        f"{usd(edge.cross_zone_usd_per_day)} USD per day of traffic between zones"
    )
    if edge.zone_placement_saves is None:
        return f"{saved}; the price of its workers is unknown."
    spare = f"{edge.zones - 1} more workers, {usd(edge.spare_workers_usd_per_day)} USD per day"
    verdict = "it saves more than it costs" if edge.zone_placement_saves else "it costs more than it saves"
    return f"{saved} and needs up to {spare}: {verdict}."


def _notes(edges: tuple[EdgeSummary, ...]) -> Iterator[str]:
    for each in edges:
        yield from edge_sentences(each)
    if edges:
        load = catalog.frontend_load("dynamo")
        yield (
            f"Requests per second and vCPU: of a frontend that does nothing else, measured {load.date} on "
            f"{load.machine}, with simulated engines. Frontends have twice the vCPUs that they use. USD per "
            "day: frontends, load balancer and traffic between zones at the peak all day, without workers. "
            "Traffic between an Application Load Balancer and the VPC's own instances is free."
        )
