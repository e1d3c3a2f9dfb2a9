"""Rules on the capacity shift: what it measures, what it moves, and who gets it."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.derived import PlacedWorkers, each_workers
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding

_PATH: Path = ("spec", "capacityShift")


@rule
def shift_has_metrics(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with a capacity shift has `observability`, which measures the demand."""
    if spec.capacity_shift and spec.observability is None:
        message = "nothing measures the real-time demand that it forecasts; add 'observability: {}' to spec"
        yield Finding(_PATH, message + _or_remove(spec))


@rule
def shift_has_batch(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with a capacity shift has batch, which uses the lent capacity."""
    if spec.capacity_shift and spec.batch is None:
        message = "nothing uses the capacity that it lends; add 'batch' with a queue to spec"
        yield Finding(_PATH, message + _or_remove(spec))


@rule
def shift_has_elastic_workers(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with a capacity shift has elastic workers, whose floors it sets."""
    if spec.capacity_shift and not any(True for _ in _elastic(spec)):
        message = (
            "no deployment has elastic workers, so there is no floor to set; give one 'replicas: {min: ..., "
            "max: ...}' with 'scaledBy: {load: {}}'"
        )
        yield Finding(_PATH, message + _or_remove(spec))


@rule
def shift_has_a_taker(spec: Spec) -> Iterator[Finding]:
    """Check that batch runs on the elastic workers, or on the pools that they free."""
    if spec.capacity_shift is None or spec.batch is None or (spec.queueing and spec.queueing.kueue):
        return
    elastic = [*_elastic(spec)]
    models = {queue.model for _, queue in usable(spec.batch.queues)}
    lending = {placed.workers.pool for placed in elastic}
    takers = {
        placed.workers.pool
        for placed in each_workers(spec)
        if placed.deployment.model.name in models and placed.workers.scaled_by is not None
    }
    shared = models & {placed.deployment.model.name for placed in elastic}
    if elastic and not shared and not lending & takers:
        message = (
            f"batch runs on {listing(sorted(models))}, which has no elastic workers on a pool of the others, "
            f"so nothing of {listing(sorted(lending))} reaches it; add a queue for an elastic model"
        )
        yield Finding(_PATH, message, "warning")


@rule
def floors_by_schedule_stay(spec: Spec) -> Iterator[Finding]:
    """Check that no floor by schedule holds capacity that the shift would lend."""
    if spec.capacity_shift is None:
        return
    for placed in _elastic(spec):
        load = placed.workers.scaled_by.load if placed.workers.scaled_by else None
        if load and load.floors:
            message = (
                f"{quote(placed.name)} keeps these workers whatever 'capacityShift' forecasts; remove them "
                "if the forecast suffices"
            )
            yield Finding((*placed.path, "scaledBy", "load", "floors"), message, "warning")


def _or_remove(spec: Spec) -> str:
    """Return the other remedy. A shared pool has none, because it needs the shift."""
    is_needed = any(pool.shared is not None for _, pool in usable(spec.pools))
    return "" if is_needed else ", or remove 'capacityShift'"


def _elastic(spec: Spec) -> Iterator[PlacedWorkers]:
    """Yield the workers whose number follows the load."""
    for placed in each_workers(spec):
        if placed.workers.scaled_by is not None and placed.workers.scaled_by.load is not None:
            yield placed
