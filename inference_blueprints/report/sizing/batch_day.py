"""The batch load of a queue per day."""

from __future__ import annotations

import math
from typing import Final

from inference_blueprints.serving.traffic import queue_traffic
from inference_blueprints.spec.types import Batch, BatchQueue, Spec
from inference_contracts import batch_limits as limits
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

#: Bytes of an input line besides its prompt, and of a result row besides its answer.
_BYTES_BESIDE_A_PROMPT: Final = 300
_BYTES_BESIDE_AN_ANSWER: Final = 700


@dataclass(frozen=True, slots=True)
class BatchDay:
    """A day of one queue."""

    queue: str
    model: str
    """The model that answers its jobs."""
    requests: int
    requests_per_job: int
    """`requests`, `requests_per_job`: Requests per day and per job."""
    input_tokens: int
    output_tokens: int
    """`input_tokens`, `output_tokens`: Mean tokens per request."""
    workers: int
    """Maximum number of workers of the model."""
    publishes: bool
    """Whether answers can go to the signal store."""
    deadline_hours: float = BatchQueue.model_fields["deadline_hours"].default
    """Maximum hours of a job; by default, that of a queue."""

    @property
    def deadline_seconds(self) -> float:
        """Maximum seconds of a job."""
        return self.deadline_hours * SECONDS_PER_HOUR

    @property
    def requests_per_second(self) -> float:
        """Mean over the day."""
        return self.requests / SECONDS_PER_DAY

    @property
    def jobs(self) -> int:
        """Jobs of the day."""
        return math.ceil(self.requests / self.requests_per_job)

    @property
    def line_bytes(self) -> int:
        """Mean bytes of an input line."""
        return self.input_tokens * limits.BYTES_PER_TOKEN + _BYTES_BESIDE_A_PROMPT

    @property
    def row_bytes(self) -> int:
        """Mean bytes of a result row."""
        return self.output_tokens * limits.BYTES_PER_TOKEN + _BYTES_BESIDE_AN_ANSWER

    @property
    def lines_of_a_segment(self) -> int:
        """Maximum lines of a segment."""
        return min(self.requests_per_job, math.ceil(limits.SEGMENT_BYTES / self.line_bytes))

    @property
    def segments_of_a_job(self) -> int:
        """Segments of a job whose input is one object."""
        return math.ceil(self.requests_per_job * self.line_bytes / limits.SEGMENT_BYTES)

    @property
    def shards_of_a_job(self) -> int:
        """Maximum shards of a job: each run of a segment's lines can end in one shard per length class."""
        lines = self.lines_of_a_segment
        runs = math.ceil(lines * (self.line_bytes + limits.LINE_OVERHEAD_BYTES) / limits.LINE_BUFFER_BYTES)
        tokens = lines * (self.input_tokens + self.output_tokens)
        full = max(tokens // limits.MAX_SHARD_TOKENS, lines // limits.MAX_SHARD_LINES)
        return min(self.segments_of_a_job * (full + runs * limits.LENGTH_CLASSES), self.requests_per_job)

    @property
    def segments(self) -> int:
        """Segments of the day."""
        return self.jobs * self.segments_of_a_job

    @property
    def shards(self) -> int:
        """Maximum shards of the day."""
        return self.jobs * self.shards_of_a_job

    @property
    def places(self) -> int:
        """Shards that the model's workers hold at once."""
        return self.workers * limits.SHARDS_PER_WORKER

    @property
    def running_jobs(self) -> int:
        """Maximum jobs that run at once: each has a place."""
        return min(self.jobs, self.places)


def batch_days(spec: Spec, batch: Batch) -> tuple[BatchDay, ...]:
    """Return the day of each queue that declares a load.

    spec, batch: The blueprint's section, and its part on batch.
    """
    models = {model.name: model for model in spec.models}
    means = {queue.name: queue_traffic(spec, models[queue.model], queue).means for queue in batch.queues}
    return tuple(
        BatchDay(
            queue=queue.name,
            model=queue.model,
            requests=queue.load.requests_per_day,
            requests_per_job=min(queue.load.requests_per_job, queue.load.requests_per_day),
            input_tokens=means[queue.name].input_tokens,
            output_tokens=means[queue.name].output_tokens,
            deadline_hours=queue.deadline_hours,
            workers=batch.workers.max,
            publishes=spec.signal_store is not None,
        )
        for queue in batch.queues
        if queue.load
    )
