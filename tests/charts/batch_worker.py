"""Values of the workers of batch queues."""

from __future__ import annotations

from inference_blueprints.render.eks.batch_worker_values import QueueScaling, batch_worker_values
from tests.charts.renderings import Manifest

CHART = "batch-worker"
RELEASE = "qwen3-8b.batch"
_QUEUE = "https://sqs.us-west-2.amazonaws.com/111122223333/shards"


def _values(workers: int | QueueScaling) -> Manifest:
    return batch_worker_values(
        image="111122223333.dkr.ecr.us-west-2.amazonaws.com/batch-worker:0a1b2c3d",
        environment={
            "BATCH_BUCKET": "batch-of-the-platform",
            "BATCH_ENDPOINT": "http://qwen3-8b.try.internal",
            "BATCH_MODEL": "qwen3-8b",
            "BATCH_QUEUE_URL": _QUEUE,
            "BATCH_SHARDS_AT_ONCE": "4",
        },
        workers=workers,
    )


FIXED = _values(2)
SCALED = _values(QueueScaling(min=0, max=12, messages=4, queue_url=_QUEUE, region="us-west-2"))
#: Values by the name of their reviewed rendering.
BOTH = {"qwen3-8b.batch": FIXED, "qwen3-8b.batch-scaled": SCALED}
