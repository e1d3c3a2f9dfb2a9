"""A rule on what queues are to take in a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.types import Batch, Model
from inference_blueprints.spec.wording import quote

_SECONDS_A_DAY = 86_400


def load_is_within_the_peak(batch: Batch, models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that no model is to answer more in a day than at its peak all day long."""
    peaks = {model.name: model.workload.peak_requests_per_second for model in models.values()}
    declared: dict[str, int] = defaultdict(int)
    for index, queue in enumerate(batch.queues):
        if queue.load is None or queue.model not in peaks:
            continue
        declared[queue.model] += queue.load.requests_per_day
        most = int(peaks[queue.model] * _SECONDS_A_DAY)
        if declared[queue.model] > most:
            message = (
                f"got {declared[queue.model]:,} requests a day for model {quote(queue.model)}, at its "
                f"peakRequestsPerSecond of {peaks[queue.model]:g} it is {most:,}; raise that, or lower this"
            )
            path = ("spec", "batch", "queues", index, "load", "requestsPerDay")
            yield Finding(path, message)
