"""Sizes of frontends, with their reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import inference_catalog as catalog
from inference_blueprints.report.plan.section import PlanSection, PlanSummary, in_tables_only
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_estimates import busy_cpu, frontend_size
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.records import dataclass
from inference_contracts.units import MIB_PER_GIB

_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class FrontendSummary:
    """The frontends of a deployment on Dynamo."""

    model: str
    deployment: str
    replicas: int
    cpu: int
    memory_mib: int
    """`replicas`, `cpu`, `memory_mib`: Number of frontends, and vCPUs and memory in MiB of each."""
    busy_cpu: float
    """vCPUs that all of them use together at the peak: from a measurement."""


def summarise_frontends(deployments: Iterable[tuple[ResolvedWorkers, ...]]) -> Iterator[FrontendSummary]:
    """Yield the frontends of each deployment on Dynamo.

    deployments: Workers of every role of each deployment.
    """
    for roles in deployments:
        model, name, traffic = roles[0].model, roles[0].deployment.name, roles[0].traffic
        if model.stack.dynamo:
            size, busy = frontend_size(model, traffic), round(busy_cpu(traffic), _DECIMALS)
            yield FrontendSummary(model.name, name, size.replicas, size.cpu, size.memory_mib, busy)


def frontends(summary: PlanSummary) -> TextTable:
    """Return the table of frontends, which has rows if a model runs on Dynamo."""
    return TextTable(
        "Frontends",
        ("frontends of",),
        ("replicas", "vCPUs of each", "memory of each, GiB", "vCPUs used at peak by all"),
        tuple(map(_row, summary[FRONTENDS])),
        (_note(),),
    )


def _row(each: FrontendSummary) -> tuple[str, ...]:
    return (
        f"{each.model}/{each.deployment}",
        str(each.replicas),
        str(each.cpu),
        f"{each.memory_mib / MIB_PER_GIB:g}",
        f"{each.busy_cpu:.2f}",
    )


def _note() -> str:
    load = catalog.frontend_load("dynamo")
    return (
        f"A request takes {load.milliseconds_per_request:g} ms of processor time, "
        f"{load.milliseconds_per_thousand_prompt_tokens:g} ms per 1,000 prompt tokens and "
        f"{load.milliseconds_per_thousand_answer_tokens:g} ms per 1,000 answer tokens (measured {load.date} "
        f"on {load.machine}). Unless the blueprint sets the size, half of it is free at the peak. Requests "
        "of batch jobs count only where no others come in."
    )


FRONTENDS = PlanSection(
    "frontends",
    lambda basis: tuple(summarise_frontends(basis.deployments.values())),
    in_tables_only,
    (frontends,),
)
