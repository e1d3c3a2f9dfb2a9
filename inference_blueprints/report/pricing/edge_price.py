"""Load balancer, connections and traffic between zones of a model at its peak, with their prices.

A capacity unit (LCU) of an Application Load Balancer is 25 new connections per second, 3,000 active ones per
minute, 1 GB per hour, or 1,000 rule evaluations per second beyond the first ten rules; one of a Network Load
Balancer is 800 new TCP connections per second, 100,000 active ones, or 1 GB per hour
(https://aws.amazon.com/elasticloadbalancing/pricing/). Traffic between an Application Load Balancer and
instances of the same VPC is free; other traffic between zones is billed in each direction
(https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer).
"""

from __future__ import annotations

import math
from typing import Final

import inference_catalog as catalog
from inference_blueprints.report.figures import EdgeSummary
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.serving.estimates.frontend_size import FrontendSize
from inference_blueprints.serving.estimates.request_estimates import request_seconds
from inference_blueprints.spec.types import Model
from inference_catalog import system_nodes
from inference_contracts.batch_limits import BYTES_PER_TOKEN

_NEW_PER_UNIT: Final = 25
_ACTIVE_PER_UNIT: Final = 3000
_GB_PER_HOUR_PER_UNIT: Final = 1.0
_RULES_PER_UNIT: Final = 1000
_FREE_RULES: Final = 10
_NETWORK_NEW_PER_UNIT: Final = 800
_NETWORK_ACTIVE_PER_UNIT: Final = 100_000
#: An Application Load Balancer closes a client's connection after this time by default:
#: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/edit-load-balancer-attributes.html
_CONNECTION_SECONDS: Final = 3600
#: Headers and JSON around a prompt and around an answer.
_BYTES_BESIDE_TOKENS: Final = 1500
_SECONDS_AN_HOUR: Final = 3600
_HOURS_A_DAY: Final = 24
_GB: Final = 1e9
#: A byte that crosses zones is billed where it leaves and where it arrives.
_DIRECTIONS: Final = 2
_VCPUS_OF_SYSTEM_NODE: Final = 4
_VCPUS_OF_LARGEST_NODE: Final = 16


def edge_summary(
    model: Model,
    frontends: tuple[FrontendSize, ...],
    *,
    rules: int,
    zones: int,
    is_zonal: bool,
    worker_usd_per_hour: float | None,
    prices: Prices,
    region: str,
) -> EdgeSummary:
    """Return what a model's peak needs.

    Parameters
    ----------
    model
        A model on Dynamo.
    frontends
        Frontends of each of its deployments.
    rules
        Rules of the load balancer: one per model.
    zones
        Zones of the platform.
    is_zonal
        Whether each deployment has its workers in one zone.
    worker_usd_per_hour
        Price of the nodes of one worker; None if it is not known.
    prices
        Prices of instances.
    region
        Region of the platform.
    """
    services, workload = catalog.service_prices(region), model.workload
    rate = workload.peak_requests_per_second
    seconds = request_seconds(workload, model.objectives)
    connections = rate * seconds
    size = (workload.input_tokens + workload.output_tokens) * BYTES_PER_TOKEN + _BYTES_BESIDE_TOKENS
    gb_per_hour = rate * size * _SECONDS_AN_HOUR / _GB
    new = connections / _CONNECTION_SECONDS
    units = {
        "new_connection_units": new / _NEW_PER_UNIT,
        "active_connection_units": connections / _ACTIVE_PER_UNIT,
        "byte_units": gb_per_hour / _GB_PER_HOUR_PER_UNIT,
        "rule_units": max(0, rules - _FREE_RULES) * rate / _RULES_PER_UNIT,
    }
    network = max(new / _NETWORK_NEW_PER_UNIT, connections / _NETWORK_ACTIVE_PER_UNIT, gb_per_hour)
    crossing = 0.0 if is_zonal else gb_per_hour * _HOURS_A_DAY * (zones - 1) / zones
    vcpus = sum(each.replicas * each.cpu for each in frontends)
    node = prices.usd_per_hour(system_nodes.INSTANCE_TYPE, "onDemand")
    hourly = services.usd("application_load_balancer"), services.usd("load_balancer_capacity_unit")
    network_unit = services.usd("network_load_balancer_capacity_unit")
    return EdgeSummary(
        model=model.name,
        requests_per_second=rate,
        requests_per_second_per_core=1
        / catalog.frontend_load("dynamo").processor_seconds(workload.input_tokens, workload.output_tokens),
        frontend_cpu=vcpus,
        frontend_nodes=math.ceil(vcpus / _VCPUS_OF_LARGEST_NODE),
        most_frontend_nodes=system_nodes.OVERFLOW_MAXIMUM_NODES,
        seconds_per_request=seconds,
        connections=connections,
        bytes_per_request=size,
        **units,
        network_balancer_units=network,
        cross_zone_gb_per_day=crossing,
        zones=zones,
        is_zonal=is_zonal,
        frontend_usd_per_day=None if node is None else vcpus / _VCPUS_OF_SYSTEM_NODE * node * _HOURS_A_DAY,
        balancer_usd_per_day=(hourly[0] + max(units.values()) * hourly[1]) * _HOURS_A_DAY,
        network_balancer_usd_per_day=(hourly[0] + network * network_unit) * _HOURS_A_DAY,
        cross_zone_usd_per_day=crossing * services.usd("cross_zone_data") * _DIRECTIONS,
        spare_workers_usd_per_day=None
        if worker_usd_per_hour is None
        else (zones - 1) * worker_usd_per_hour * _HOURS_A_DAY,
    )
