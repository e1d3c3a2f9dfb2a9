"""Use of EC2 quotas by the platform's nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import inference_catalog as catalog
from inference_blueprints.report.figures import PoolSummary
from inference_blueprints.report.plan.cells import UNKNOWN, few
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.types import Pool
from inference_catalog import InstanceType, node_facts
from inference_contracts.records import dataclass

_ON_DEMAND, _SPOT = "onDemand", "spot"
#: The quota key for each purchase. Instances of a reservation count as on-demand instances (Amazon EC2 User
#: Guide, "On-Demand Capacity Reservations"). The quota of Capacity Blocks is unknown here.
_COUNTED_AS = {"onDemand": _ON_DEMAND, "reservation": _ON_DEMAND, "spot": _SPOT}
_COMMON_WORDS = re.compile(r"^(Running On-Demand|All) | \(.*?\)")


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """vCPUs that one of EC2's quotas has to allow."""

    code: str
    name: str
    """`code`, `name`: In Service Quotas, service ``ec2``; empty where none is known."""
    purchase: str
    """What it counts: the blueprint's word."""
    vcpu_used: int
    vcpu_max: int
    """`vcpu_used`, `vcpu_max`: For the used nodes, and for as many as the blueprint allows."""
    pools: tuple[str, ...]
    """Whose nodes; the platform's own are ``system nodes``."""


@dataclass(frozen=True, slots=True)
class _Part:
    """vCPUs of one pool under one quota."""

    pool: str
    purchase: str
    quota: catalog.Quota | None
    vcpu_used: int
    vcpu_max: int


def _summarise(basis: PlanBasis) -> tuple[QuotaNeed, ...]:
    """Return the quotas that all nodes need, including the platform's own.

    Returns: Sorted by code. The maximum uses each pool's type with the most vCPUs. Capacity without a known
        quota has an empty code.
    """
    parts = [*_system_parts()] if basis.spec.cluster.eks else []
    for pool, summary in zip(basis.spec.pools, basis[POOLS], strict=True):
        parts += _pool_parts(pool, summary)
    grouped: dict[tuple[str, str], list[_Part]] = {}
    for part in parts:
        grouped.setdefault((part.quota.name if part.quota else "", part.purchase), []).append(part)
    return tuple(
        QuotaNeed(
            code=code,
            name=same[0].quota.quota if same[0].quota else "",
            purchase=purchase,
            vcpu_used=sum(part.vcpu_used for part in same),
            vcpu_max=sum(part.vcpu_max for part in same),
            pools=tuple(part.pool for part in same),
        )
        for (code, purchase), same in sorted(grouped.items())
    )


def _pool_parts(pool: Pool, summary: PoolSummary) -> Iterator[_Part]:
    """Yield a pool's parts by quota.

    A pool that falls back from Spot counts twice, because either may serve all of it.
    """
    types = pool.types
    reckoned = [each for each in types if each.name == summary.reckoned_instance_type]
    used = summary.nodes_used * reckoned[0].vcpu if reckoned else 0
    maximum = summary.nodes_max * max(each.vcpu for each in types)
    purchase = pool.purchase.chosen
    counted = _COUNTED_AS.get(purchase, purchase)
    yield _Part(pool.name, counted, _quota(types[0], counted), used, maximum)
    if pool.purchase.spot and pool.purchase.spot.on_demand_fallback:
        yield _Part(pool.name, _ON_DEMAND, _quota(types[0], _ON_DEMAND), 0, maximum)


def _system_parts() -> Iterator[_Part]:
    node = catalog.instance_type(node_facts.INSTANCE_TYPE)
    largest = max(catalog.instance_type(name).vcpu for name in node_facts.OVERFLOW_INSTANCE_TYPES)
    maximum = node_facts.MAXIMUM_NODES * node.vcpu + node_facts.OVERFLOW_MAXIMUM_NODES * largest
    yield _Part("system nodes", _ON_DEMAND, _quota(node, _ON_DEMAND), node_facts.NODES * node.vcpu, maximum)


def _quota(instance_type: InstanceType, purchase: str) -> catalog.Quota | None:
    return next((each for each in catalog.quotas().values() if each.counts(instance_type, purchase)), None)


def ec2_quotas(summary: PlanSummary) -> TextTable:
    return TextTable(
        "EC2 quotas",
        ("quota", "code"),
        ("vCPUs, used nodes", "vCPUs, maximum"),
        tuple(map(_quota_row, summary[QUOTAS])),
        tuple(_notes(summary[QUOTAS])),
    )


def _notes(needs: Sequence[QuotaNeed]) -> Iterator[str]:
    start = " New accounts usually start at 0 for accelerator instances." if _of_accelerators(needs) else ""
    yield f"These are regional Service Quotas.{start}"


def _of_accelerators(needs: Sequence[QuotaNeed]) -> bool:
    """Return whether a quota counts instances with accelerators, not only those of processors."""
    return any("Standard" not in need.name for need in needs)


def _quota_row(need: QuotaNeed) -> tuple[str, ...]:
    name = need.name or f"{UNKNOWN} ({need.purchase})"
    return (
        f"{name}: {', '.join(need.pools)}",
        need.code or UNKNOWN,
        f"{need.vcpu_used:,}",
        f"{need.vcpu_max:,}",
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the quotas that the account needs, at the largest numbers of nodes."""
    needs = few((f"{_short_name(need)} {need.vcpu_max:,}" for need in summary[QUOTAS]), ", ")
    if needs:
        start = "; new accounts have 0 for accelerators" if _of_accelerators(summary[QUOTAS]) else ""
        yield Label.LIMITS, f"vCPU quotas of EC2: {needs}{start}"


def _short_name(need: QuotaNeed) -> str:
    """Return the words of a quota's name that others do not have, such as ``G and VT`` or ``P5 Spot``."""
    name = need.name.replace(" Spot Instance Requests", " Spot").removesuffix(" instances")
    return _COMMON_WORDS.sub("", name) or f"{UNKNOWN} ({need.purchase})"


QUOTAS = PlanSection("quotas", _summarise, _in_short, (ec2_quotas,))
