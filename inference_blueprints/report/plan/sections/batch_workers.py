"""Resources of batch workers, and their price."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.pricing.ecs_price import USD_PER_GIB_HOUR, USD_PER_VCPU_HOUR
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.types import Batch
from inference_catalog import ecs_hosts as sizes
from inference_contracts.records import dataclass

_PLACES = {"eks": "pods on system nodes", "ecs": "AWS Fargate tasks"}


@dataclass(frozen=True, slots=True)
class BatchWorkersSummary:
    """The workers of all models that have queues."""

    place: str
    """Where they run: ``eks`` or ``ecs``."""
    models: int
    """How many models have workers."""
    workers_min: int
    workers_max: int
    """`workers_min`, `workers_max`: Numbers over all models."""
    vcpu: int
    memory_gib: int
    usd_per_hour_min: float | None
    usd_per_hour_max: float | None
    """`usd_per_hour_min`, `usd_per_hour_max`: On-demand prices; None if they run on nodes that exist
    anyway."""


def _summarise(batch: Batch | None) -> BatchWorkersSummary | None:
    """Return the resources and the price of batch workers; None if there are none."""
    if batch is None:
        return None
    models = len({queue.model for queue in batch.queues})
    minimum, maximum = models * batch.workers.min, models * batch.workers.max
    if batch.workers.ecs is None:
        return BatchWorkersSummary(
            "eks", models, minimum, maximum, sizes.POD_VCPU, sizes.POD_MEMORY_GIB, None, None
        )
    each = sizes.TASK_VCPU * USD_PER_VCPU_HOUR + sizes.TASK_MEMORY_GIB * USD_PER_GIB_HOUR
    return BatchWorkersSummary(
        "ecs",
        models,
        minimum,
        maximum,
        sizes.TASK_VCPU,
        sizes.TASK_MEMORY_GIB,
        minimum * each,
        maximum * each,
    )


def batch_workers(summary: PlanSummary) -> TextTable:
    """Return the table of batch workers, which has a row if the blueprint has batch."""
    workers = summary[BATCH_WORKERS]
    note = (
        '"Cost of a month" counts the fewest workers. On-demand prices of us-east-1; Fargate Spot is cheaper.'
        if workers and workers.place == "ecs"
        else "If the system nodes have no room for all workers, Karpenter adds nodes."
    )
    return TextTable(
        "Batch workers",
        ("runs on",),
        (
            "workers",
            "vCPUs per worker",
            "memory per worker, GiB",
            "USD per hour, minimum",
            "USD per hour, maximum",
        ),
        () if workers is None else (_worker_row(workers),),
        (note,),
    )


def _worker_row(workers: BatchWorkersSummary) -> tuple[str, ...]:
    return (
        _PLACES[workers.place],
        f"{workers.workers_min} to {workers.workers_max}",
        str(workers.vcpu),
        str(workers.memory_gib),
        _usd_or_dash(workers.usd_per_hour_min),
        _usd_or_dash(workers.usd_per_hour_max),
    )


def _usd_or_dash(price: float | None) -> str:
    return "-" if price is None else f"{price:.2f}"


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    if workers := summary[BATCH_WORKERS]:
        kind = "pods" if workers.place == "eks" else "Fargate tasks"
        yield Label.BATCH, f"{workers.workers_min} to {workers.workers_max} workers ({kind})"


BATCH_WORKERS = PlanSection(
    "batchWorkers", lambda basis: _summarise(basis.spec.batch), _in_short, (batch_workers,)
)
