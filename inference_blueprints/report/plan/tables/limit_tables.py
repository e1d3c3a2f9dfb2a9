"""Limit tables of the plan: EC2 quotas and IPv4 addresses."""

from __future__ import annotations

from inference_blueprints.report.figures import PlanSummary, PoolAddresses, QuotaNeed
from inference_blueprints.report.plan.tables.cells import UNKNOWN
from inference_blueprints.report.tables.text_table import TextTable


def ec2_quotas(summary: PlanSummary) -> TextTable:
    return TextTable(
        "EC2 quotas",
        ("quota", "code"),
        ("vCPUs, used nodes", "vCPUs, maximum"),
        tuple(map(_quota_row, summary.quotas)),
        ("These are regional Service Quotas. New accounts usually start at 0 for accelerator instances.",),
    )


def _quota_row(need: QuotaNeed) -> tuple[str, ...]:
    name = need.name or f"{UNKNOWN} ({need.purchase})"
    return (
        f"{name}: {', '.join(need.pools)}",
        need.code or UNKNOWN,
        f"{need.vcpu_used:,}",
        f"{need.vcpu_max:,}",
    )


def addresses(summary: PlanSummary) -> TextTable:
    use = summary.addresses
    left = f"{use.zones} subnets with {use.addresses_in_a_zone:,} addresses for nodes each"
    shared = f"at most {use.addresses_in_a_zone:,} addresses per zone, because the subnets are not known"
    return TextTable(
        "IPv4 addresses",
        ("nodes of",),
        (
            "pods per node",
            "/28 prefixes per node",
            "interfaces per node",
            "addresses per node",
            "nodes, maximum",
            "nodes per subnet",
        ),
        tuple(map(_address_row, use.pools)),
        (
            f"{use.cidr}: {left if use.is_exact else shared}; the maximum number of nodes takes "
            f"{use.needed:,} of "
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
