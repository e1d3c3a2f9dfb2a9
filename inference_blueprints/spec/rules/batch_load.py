"""A rule on the daily load of queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding

_SECONDS_A_DAY = 86_400


def load_is_within_the_peak(spec: Spec) -> Iterator[Finding]:
    """Check that the daily load of a model is at most its peak rate over 24 hours."""
    peaks = {model.name: model.workload.peak_requests_per_second for _, model in usable(spec.models)}
    declared: dict[str, int] = defaultdict(int)
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        if queue.load is None or queue.model not in peaks:
            continue
        declared[queue.model] += queue.load.requests_per_day
        most = int(peaks[queue.model] * _SECONDS_A_DAY)
        if declared[queue.model] > most:
            message = (
                f"got {declared[queue.model]:,} requests per day for model {quote(queue.model)}, but at its "
                f"peakRequestsPerSecond of {peaks[queue.model]:g} it can answer {most:,}; raise the "
                "peak, or lower the load"
            )
            path = ("spec", "batch", "queues", index, "load", "requestsPerDay")
            yield Finding(path, message)
