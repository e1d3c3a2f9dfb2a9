"""What a model's peak needs between its clients and its workers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EdgeSummary:
    """Frontends, connections, load balancer and traffic of a model at its peak.

    Parameters
    ----------
    model
        Name of the model.
    requests_per_second
        Its peak.
    requests_per_second_per_core
        Requests that one vCPU of a frontend passes on if it does nothing else: from a measurement.
    frontend_cpu
        vCPUs of all frontends.
    frontend_nodes
        Largest nodes for routers that they fill, at least.
    most_frontend_nodes
        Most nodes for routers that a platform starts.
    seconds_per_request
        Longest mean duration of a request under the objectives.
    connections
        Connections of clients with one request at a time: requests per second x seconds per request.
    bytes_per_request
        Bytes of a request and its answer.
    new_connection_units, active_connection_units, byte_units, rule_units
        Capacity units of an Application Load Balancer by each dimension; the largest is billed.
    network_balancer_units
        Capacity units of a Network Load Balancer for the same traffic.
    cross_zone_gb_per_day
        GB per day between frontends and workers in different zones.
    zones
        Zones of the platform.
    is_zonal
        Whether each deployment has its workers in one zone. Its frontends prefer that zone, so no request
        crosses zones.
    frontend_usd_per_day, balancer_usd_per_day, network_balancer_usd_per_day, cross_zone_usd_per_day
        US dollars per day at the peak all day; None if a price is not known.
    spare_workers_usd_per_day
        US dollars per day of the workers that a deployment per zone needs at most beside the others: one
        less than there are zones. None if their price is not known.
    """

    model: str
    requests_per_second: float
    requests_per_second_per_core: float
    frontend_cpu: int
    frontend_nodes: int
    most_frontend_nodes: int
    seconds_per_request: float
    connections: float
    bytes_per_request: float
    new_connection_units: float
    active_connection_units: float
    byte_units: float
    rule_units: float
    network_balancer_units: float
    cross_zone_gb_per_day: float
    zones: int
    is_zonal: bool
    frontend_usd_per_day: float | None
    balancer_usd_per_day: float
    network_balancer_usd_per_day: float
    cross_zone_usd_per_day: float
    spare_workers_usd_per_day: float | None

    @property
    def balancer_units(self) -> float:
        """Capacity units that are billed."""
        return max(self.new_connection_units, self.active_connection_units, self.byte_units, self.rule_units)

    @property
    def zone_placement_saves(self) -> bool | None:
        """Whether a deployment per zone saves more than it costs; None if a price is not known."""
        spare = self.spare_workers_usd_per_day
        return None if spare is None else self.cross_zone_usd_per_day > spare
