"""Load balancer, connections and traffic between zones of a model at its peak, with their prices.

The cost of a month contains all of them, also for a small peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

import inference_catalog as catalog
from inference_blueprints.report.plan.cells import UNKNOWN, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.pricing.network_price import DIRECTIONS, is_zonal, peak_traffic
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_estimates import frontend_size
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.known_callers import resources_beside
from inference_blueprints.serving.traffic import deployment_traffic, model_traffic
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.types import Model, Spec
from inference_catalog import node_facts
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY

#: Of `node_facts.INSTANCE_TYPE`.
VCPUS_OF_SYSTEM_NODE: Final = 4
_VCPUS_OF_LARGEST_NODE: Final = 16
#: Below this peak, connections and load balancer cost next to nothing.
MIN_REQUESTS_PER_SECOND: Final = 1000.0
EDGE_FIGURES = (
    "requests per second",
    "requests per second and vCPU",
    "vCPUs of frontends",
    "connections",
    "load balancer units",
    "between zones, GB per day",
    "USD per day",
)


@dataclass(frozen=True, slots=True)
class EdgeSummary:
    """Frontends, connections, load balancer and traffic of a model at its peak."""

    model: str
    requests_per_second: float
    """Its peak."""
    requests_per_second_per_core: float
    """Requests that one vCPU of a frontend passes on if it does nothing else: from a measurement."""
    frontend_cpu: int
    """vCPUs of all frontends."""
    frontend_nodes: int
    """Largest nodes for routers that they fill, at least."""
    most_frontend_nodes: int
    """Most nodes for routers that a platform starts."""
    seconds_per_request: float
    """Longest mean duration of a request under the objectives."""
    connections: float
    """Connections of clients with one request at a time: requests per second x seconds per request."""
    bytes_per_request: float
    """Bytes of a request and its answer."""
    new_connection_units: float
    active_connection_units: float
    byte_units: float
    rule_units: float
    """`new_connection_units`, `active_connection_units`, `byte_units`, `rule_units`: Capacity units of an
    Application Load Balancer by each dimension; the largest is billed."""
    network_balancer_units: float
    """Capacity units of a Network Load Balancer for the same traffic."""
    cross_zone_gb_per_day: float
    """GB per day between frontends and workers in different zones."""
    zones: int
    """Zones of the platform."""
    is_zonal: bool
    """Whether each deployment has its workers in one zone. Its frontends prefer that zone, so no request
    crosses zones."""
    frontend_usd_per_day: float | None
    balancer_usd_per_day: float
    network_balancer_usd_per_day: float
    cross_zone_usd_per_day: float
    """`frontend_usd_per_day`, `balancer_usd_per_day`, `network_balancer_usd_per_day`,
    `cross_zone_usd_per_day`: US dollars per day at the peak all day; None if a price is not known."""
    spare_workers_usd_per_day: float | None
    """US dollars per day of the workers that a deployment per zone needs at most beside the others: one less
    than there are zones. None if their price is not known."""

    @property
    def balancer_units(self) -> float:
        """Capacity units that are billed."""
        return max(self.new_connection_units, self.active_connection_units, self.byte_units, self.rule_units)

    @property
    def zone_placement_saves(self) -> bool | None:
        """Whether a deployment per zone saves more than it costs; None if a price is not known."""
        spare = self.spare_workers_usd_per_day
        return None if spare is None else self.cross_zone_usd_per_day > spare


def edge_summary(
    spec: Spec,
    model: Model,
    *,
    rules: int,
    zones: int,
    is_zonal: bool,
    worker_usd_per_hour: float | None,
    prices: Prices,
    region: str,
) -> EdgeSummary:
    """Return what a model's peak needs.

    spec, model: The blueprint's section, and a model on Dynamo.
    rules: Rules of the load balancer: one per model.
    zones: Zones of the platform.
    is_zonal: Whether each deployment has its workers in one zone.
    worker_usd_per_hour: Price of the nodes of one worker; None if it is not known.
    prices: Prices of instances.
    region: Region of the platform.
    """
    services, traffic = catalog.service_prices(region), model_traffic(spec, model)
    workload = traffic.means
    frontends = [frontend_size(model, deployment_traffic(spec, model, each)) for each in model.deployments]
    peak = peak_traffic(model, traffic, rules)
    units, network = peak.units, peak.network_units
    crossing = 0.0 if is_zonal else peak.gb_per_hour * HOURS_PER_DAY * (zones - 1) / zones
    beside, _ = resources_beside(spec)
    vcpus = sum(each.replicas * (each.cpu + beside) for each in frontends)
    node = prices.usd_per_hour(node_facts.INSTANCE_TYPE, "onDemand")
    hourly = services.usd("application_load_balancer"), services.usd("load_balancer_capacity_unit")
    network_unit = services.usd("network_load_balancer_capacity_unit")
    return EdgeSummary(
        model=model.name,
        requests_per_second=workload.peak_requests_per_second,
        requests_per_second_per_core=1
        / catalog.frontend_load("dynamo").processor_seconds(workload.input_tokens, workload.output_tokens),
        frontend_cpu=vcpus,
        frontend_nodes=math.ceil(vcpus / _VCPUS_OF_LARGEST_NODE),
        most_frontend_nodes=node_facts.OVERFLOW_MAXIMUM_NODES,
        seconds_per_request=peak.seconds_per_request,
        connections=peak.connections,
        bytes_per_request=peak.bytes_per_request,
        **units,
        network_balancer_units=network,
        cross_zone_gb_per_day=crossing,
        zones=zones,
        is_zonal=is_zonal,
        frontend_usd_per_day=None if node is None else vcpus / VCPUS_OF_SYSTEM_NODE * node * HOURS_PER_DAY,
        balancer_usd_per_day=(hourly[0] + max(units.values()) * hourly[1]) * HOURS_PER_DAY,
        network_balancer_usd_per_day=(hourly[0] + network * network_unit) * HOURS_PER_DAY,
        cross_zone_usd_per_day=crossing * services.usd("cross_zone_data") * DIRECTIONS,
        spare_workers_usd_per_day=None
        if worker_usd_per_hour is None
        else (zones - 1) * worker_usd_per_hour * HOURS_PER_DAY,
    )


def _summarise(basis: PlanBasis) -> Iterator[EdgeSummary]:
    """Yield the edge of each model on Dynamo with a large peak."""
    spec, prices = basis.spec, basis.prices
    zones = len(platform_zones(spec.environment))
    for model in spec.models:
        rate = model_traffic(spec, model).requests_per_second
        if model.stack.dynamo is None or rate < MIN_REQUESTS_PER_SECOND:
            continue
        own = [each for each in basis.workers if each.model.name == model.name]
        yield edge_summary(
            spec,
            model,
            rules=len(spec.models),
            zones=zones,
            is_zonal=is_zonal(model, own),
            worker_usd_per_hour=worker_usd_per_hour(own, prices),
            prices=prices,
            region=spec.environment.region,
        )


def worker_usd_per_hour(roles: Iterable[ResolvedWorkers], prices: Prices) -> float | None:
    """Return the price per hour of a worker's share of its node, for the dearest role; None if unknown.

    roles: Workers of every role of a model.
    """
    found = [_share(each, prices) for each in roles]
    known = [price for price in found if price is not None]
    return max(known) if known and len(known) == len(found) else None


def _share(workers: ResolvedWorkers, prices: Prices) -> float | None:
    kind = workers.types[0]
    usd = prices.usd_per_hour(kind.name, workers.pool.purchase.chosen)
    if usd is None or not kind.accelerator_count:
        return None
    return usd * workers.workers.accelerators / kind.accelerator_count


def real_time(summary: PlanSummary) -> TextTable:
    """Return the table of models with a large peak."""
    return TextTable(
        "Real time at a large peak",
        ("model",),
        EDGE_FIGURES,
        tuple((each.model, *edge_cells(each)) for each in summary[EDGES]),
        tuple(_notes(summary[EDGES])),
    )


def edge_cells(edge: EdgeSummary) -> tuple[str, ...]:
    """Return the figures of a model.

    edge: The model's edge.
    """
    total = _usd_per_day(edge)
    return (
        f"{edge.requests_per_second:,.0f}",
        f"{edge.requests_per_second_per_core:,.0f}",
        f"{edge.frontend_cpu:,}",
        f"{edge.connections:,.0f}",
        f"{edge.balancer_units:,.1f}",
        f"{edge.cross_zone_gb_per_day:,.0f}",
        UNKNOWN if total is None else usd(total),
    )


def _usd_per_day(edge: EdgeSummary) -> float | None:
    """Return the price of frontends, load balancer and traffic between zones; None if one is unknown."""
    if edge.frontend_usd_per_day is None:
        return None
    return edge.frontend_usd_per_day + edge.balancer_usd_per_day + edge.cross_zone_usd_per_day


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the frontends that no platform has room for."""
    for edge in summary[EDGES]:
        for sentence in _too_many_frontends(edge):
            yield Label.WARNINGS, sentence


def edge_sentences(edge: EdgeSummary) -> Iterator[str]:
    """Yield what follows from the figures of a model."""
    yield (
        f"{edge.model}: connections = {edge.requests_per_second:,.0f}/s x "
        f"{number(edge.seconds_per_request)} s = {edge.connections:,.0f} "
        "with one request at a time on each (Little's law). Load balancer units "
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
    yield from _too_many_frontends(edge)
    yield _placement(edge)


def _too_many_frontends(edge: EdgeSummary) -> Iterator[str]:
    if edge.frontend_nodes > edge.most_frontend_nodes:
        yield (
            f"{edge.model}: the frontends fill {edge.frontend_nodes:,} nodes of 16 vCPUs, and a platform "
            f"starts at most {edge.most_frontend_nodes} for routers. Divide the traffic among "
            f"{-(-edge.frontend_nodes // edge.most_frontend_nodes)} platforms."
        )


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


EDGES = PlanSection(
    "edges",
    lambda basis: tuple(_summarise(basis)),
    _in_short,
    (real_time,),
    ("balancer_units", "zone_placement_saves"),
)
