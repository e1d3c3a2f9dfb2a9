"""Values of the chart ``batch-worker``: the workers of one model's batch jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from inference_blueprints.render.eks.rendered_values import rendered_values
from inference_blueprints.serving.types import Architecture
from inference_blueprints.serving.types.process_parts import (
    EnvironmentName,
    NonEmpty,
    NotNegative,
    Positive,
)
from inference_catalog.node_facts import POOL_LABEL, SYSTEM_ARCHITECTURE
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueScaling:
    """KEDA settings that scale workers by the length of their queue."""

    max: Positive
    """`max`, `min`: Maximum and minimum number of workers."""
    messages: Positive
    """Messages per worker, waiting or in progress."""
    min: NotNegative
    queue_url: NonEmpty
    region: NonEmpty


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWorkerValues:
    """Values of the chart: either a number of replicas or their scaling."""

    image: NonEmpty
    scaling: QueueScaling | None = None
    replicas: Positive | None = None
    environment: Annotated[Mapping[EnvironmentName, str], Field(min_length=1)]
    architecture: Architecture
    pool_label: NonEmpty


def batch_worker_values(
    *, image: str, environment: Mapping[str, str], workers: int | QueueScaling
) -> dict[str, Any]:
    """Return the values of the chart for a fixed number of workers, or for workers that are scaled."""
    values = BatchWorkerValues(
        image=image,
        scaling=workers if isinstance(workers, QueueScaling) else None,
        replicas=None if isinstance(workers, QueueScaling) else workers,
        environment=environment,
        architecture=SYSTEM_ARCHITECTURE,
        pool_label=POOL_LABEL,
    )
    rendered: dict[str, Any] = rendered_values(values)
    return rendered
