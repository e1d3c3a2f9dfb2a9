"""Resources of batch workers, and their price on AWS Fargate.

Prices of us-east-1, Linux on x86 (https://aws.amazon.com/fargate/pricing/, 2026-06). Those of Fargate Spot
change and are lower.
"""

from __future__ import annotations

from inference_blueprints.report.figures import BatchWorkersSummary
from inference_blueprints.spec.types import Batch
from inference_catalog import batch_worker_sizes as sizes

USD_PER_VCPU_HOUR = 0.04048
USD_PER_GIB_HOUR = 0.004445


def batch_worker_price(batch: Batch | None) -> BatchWorkersSummary | None:
    """Return the resources and the price of batch workers; None if there are none."""
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
