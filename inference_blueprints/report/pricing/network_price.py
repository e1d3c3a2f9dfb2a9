"""Price of the network in a month: NAT gateways, endpoints, load balancer, and traffic at the stated peak.

A capacity unit (LCU) of an Application Load Balancer is 25 new connections per second, 3,000 active ones per
minute, 1 GB per hour, or 1,000 rule evaluations per second beyond the first ten rules; one of a Network Load
Balancer is 800 new TCP connections per second, 100,000 active ones, or 1 GB per hour
(https://aws.amazon.com/elasticloadbalancing/pricing/). Traffic between an Application Load Balancer and
instances of the same VPC is free; other traffic between zones is billed in each direction
(https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import inference_catalog as catalog
from inference_blueprints.report.figures import CostItem
from inference_blueprints.serving.estimates.node_copies import weight_downloads
from inference_blueprints.serving.estimates.request_estimates import request_seconds
from inference_blueprints.serving.resolved import ResolvedWorkers, common_zone
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.traffic import Traffic, model_traffic
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.types import Model, Spec
from inference_catalog import ServicePrices
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import GB, HOURS_PER_MONTH, SECONDS_PER_HOUR

_DECIMALS: Final = 2
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
#: A byte that crosses zones is billed where it leaves and where it arrives.
DIRECTIONS: Final = 2


@dataclass(frozen=True, slots=True)
class PeakTraffic:
    """Connections, bytes and load balancer units of a model at its peak."""

    seconds_per_request: float
    """Longest mean duration of a request under the objectives."""
    connections: float
    """Connections of clients with one request at a time: requests per second x seconds per request."""
    bytes_per_request: float
    """Bytes of a request and its answer, without images."""
    gb_per_hour: float
    units: Mapping[str, float]
    """Capacity units of an Application Load Balancer by each dimension; the largest is billed."""
    network_units: float
    """Capacity units of a Network Load Balancer for the same traffic."""


def peak_traffic(model: Model, traffic: Traffic, rules: int) -> PeakTraffic:
    """Return what a model's peak sends through the load balancer.

    traffic: The model's.
    rules: Rules of the load balancer: one per model.
    """
    workload = traffic.means
    rate, seconds = traffic.requests_per_second, request_seconds(workload, model.objectives)
    connections = rate * seconds
    size = (workload.input_tokens + workload.output_tokens) * BYTES_PER_TOKEN + _BYTES_BESIDE_TOKENS
    gb_per_hour = rate * size * SECONDS_PER_HOUR / GB
    new = connections / _CONNECTION_SECONDS
    return PeakTraffic(
        seconds_per_request=seconds,
        connections=connections,
        bytes_per_request=size,
        gb_per_hour=gb_per_hour,
        units={
            "new_connection_units": new / _NEW_PER_UNIT,
            "active_connection_units": connections / _ACTIVE_PER_UNIT,
            "byte_units": gb_per_hour / _GB_PER_HOUR_PER_UNIT,
            "rule_units": max(0, rules - _FREE_RULES) * rate / _RULES_PER_UNIT,
        },
        network_units=max(new / _NETWORK_NEW_PER_UNIT, connections / _NETWORK_ACTIVE_PER_UNIT, gb_per_hour),
    )


def is_zonal(model: Model, roles: Sequence[ResolvedWorkers]) -> bool:
    """Return whether each deployment of a model has its workers in one zone, which its frontends prefer.

    roles: Workers of every role of every deployment, also those of other models.
    """
    own = [each for each in roles if each.model.name == model.name]
    return all(
        bool(common_zone([role for role in own if role.deployment.name == each.name]))
        for each in model.deployments
    )


def network_items(
    spec: Spec, roles: Sequence[ResolvedWorkers], services: ServicePrices
) -> Iterator[CostItem]:
    """Yield the load balancer and traffic at the stated peak, and what the platform adds to a VPC of its own.

    spec: The blueprint's section.
    roles: Workers of every role of every deployment.
    """
    zones = len(platform_zones(spec.environment))
    if not spec.network.existing:
        each = services.usd("nat_gateway") + services.usd("public_ipv4")
        yield _hourly("NAT gateways", f"{zones}, with an IPv4 address each", zones * each)
        yield from _downloads(roles, services)
        count = sum(endpoint.kind == "interface" for endpoint in catalog.endpoints().values())
        yield _hourly(
            "interface endpoints",
            f"{count} in {zones} zones, without data",
            count * zones * services.usd("interface_endpoint"),
        )
    yield _hourly("load balancer", "1, without capacity units", services.usd("application_load_balancer"))
    peaks = [peak_traffic(model, model_traffic(spec, model), len(spec.models)) for model in spec.models]
    units = max(sum(peak.units[name] for peak in peaks) for name in peaks[0].units) if peaks else 0.0
    yield _hourly(
        "load balancer capacity",
        f"{number(units, 2)} units (LCU) at the stated peak, all month",
        units * services.usd("load_balancer_capacity_unit"),
    )
    crossing = sum(
        peak.gb_per_hour * (zones - 1) / zones
        for model, peak in zip(spec.models, peaks, strict=True)
        if not STACKS[model.stack.chosen].serves_directly and not is_zonal(model, roles)
    )
    if crossing:
        yield _hourly(
            "traffic between zones",
            f"{number(crossing * HOURS_PER_MONTH, 2)} GB between routers and workers at the stated peak, all "
            "month",
            crossing * services.usd("cross_zone_data") * DIRECTIONS,
        )
    usd = services.usd("hosted_zone")
    yield CostItem("private DNS zone", "1", round(usd, _DECIMALS))


def _hourly(name: str, assumption: str, usd_per_hour: float) -> CostItem:
    return CostItem(name, assumption, round(usd_per_hour * HOURS_PER_MONTH, _DECIMALS))


def _downloads(roles: Sequence[ResolvedWorkers], services: ServicePrices) -> Iterator[CostItem]:
    """Yield the price of the weights that workers or nodes fetch from the Hub through NAT gateways."""
    size = sum(
        each.shape.weight_bytes * weight_downloads(each) for each in roles if not each.model.weights.in_s3
    )
    size += sum(each.draft_file_bytes * each.workers.maximum * each.nodes for each in roles)
    if size:
        usd = size / GB * services.usd("nat_gateway_data")
        yield CostItem(
            "NAT gateway data",
            f"weights from the Hub, {size / GB:,.0f} GB each time all workers start; once",
            round(usd, _DECIMALS),
            usd_per_month_least=0.0 if any(each.workers.scaled_by for each in roles) else None,
        )
