"""What the deployed charts say of batch workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inference_blueprints.local.emulator.records import RecordedRelease


@dataclass(frozen=True, slots=True)
class WorkerRelease:
    """The workers of one model.

    Parameters
    ----------
    model
        The model.
    replicas
        How many there are.
    environment
        What the chart tells them.
    """

    model: str
    replicas: int
    environment: Mapping[str, str]


def worker_releases(releases: Iterable[RecordedRelease]) -> list[WorkerRelease]:
    """Return those of the releases that are batch workers: their environment names a queue of shards.

    Parameters
    ----------
    releases
        What the emulator recorded.
    """
    return [
        WorkerRelease(environment["BATCH_MODEL"], release.values["replicas"], environment)
        for release in releases
        for environment in [release.values.get("environment", {})]
        if "BATCH_QUEUE_URL" in environment
    ]
