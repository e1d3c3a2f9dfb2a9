"""What the workers of batch ask for and, on AWS Fargate, cost.

Prices of us-east-1, Linux on x86 (https://aws.amazon.com/fargate/pricing/, 2026-06). Those of Fargate Spot
change and are lower.
"""

from __future__ import annotations

from inference_blueprints.catalog import batch_workers as sizes
from inference_blueprints.planning.plan_table import PlanTable
from inference_blueprints.planning.types import BatchWorkersSummary, PlanSummary
from inference_blueprints.spec.types import Batch

USD_PER_VCPU_HOUR = 0.04048
USD_PER_GIB_HOUR = 0.004445
_PLACES = {"eks": "pods on system nodes", "ecs": "tasks of AWS Fargate"}


def batch_worker_price(batch: Batch | None) -> BatchWorkersSummary | None:
    """Return what workers ask for and cost; None where there are none.

    Parameters
    ----------
    batch
        The blueprint's section.
    """
    if batch is None:
        return None
    models = len({queue.model for queue in batch.queues})
    least, most = models * batch.workers.min, models * batch.workers.max
    if batch.workers.ecs is None:
        return BatchWorkersSummary(
            "eks", models, least, most, sizes.POD_VCPU, sizes.POD_MEMORY_GIB, None, None
        )
    each = sizes.TASK_VCPU * USD_PER_VCPU_HOUR + sizes.TASK_MEMORY_GIB * USD_PER_GIB_HOUR
    return BatchWorkersSummary(
        "ecs", models, least, most, sizes.TASK_VCPU, sizes.TASK_MEMORY_GIB, least * each, most * each
    )


def batch_workers(summary: PlanSummary) -> PlanTable:
    """Return the table of the workers, which has a row where there is batch.

    Parameters
    ----------
    summary
        What `summarise` returned.
    """
    workers = summary.batch_workers
    note = (
        "Beside the totals, at on-demand prices of us-east-1; Spot is cheaper."
        if workers and workers.place == "ecs"
        else "Where the system nodes have no room for all, Karpenter adds some."
    )
    return PlanTable(
        "Batch workers",
        ("batch workers",),
        ("workers", "vCPU each", "GiB each", "USD/h", "at most"),
        () if workers is None else (_row(workers),),
        (note,),
    )


def _row(workers: BatchWorkersSummary) -> tuple[str, ...]:
    return (
        _PLACES[workers.place],
        f"{workers.workers_min} to {workers.workers_max}",
        str(workers.vcpu),
        str(workers.memory_gib),
        _usd(workers.usd_per_hour_min),
        _usd(workers.usd_per_hour_max),
    )


def _usd(price: float | None) -> str:
    return "-" if price is None else f"{price:.2f}"
