"""Rules on elastic workers: their range, its owner, and floors by schedule."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from inference_blueprints.spec.cron import keda_cron_faults
from inference_blueprints.spec.derived import PlacedWorkers, each_workers
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import (
    FIRST_TOKEN,
    Floor,
    LoadScaling,
    ReplicaRange,
    Spec,
    tail_objective,
)
from inference_blueprints.spec.wording import Path, quote
from inference_contracts.errors import Finding


@rule
def range_has_an_owner(spec: Spec) -> Iterator[Finding]:
    """Check that a range of replicas has `scaledBy`, and that `scaledBy` has a range."""
    for placed in each_workers(spec):
        is_range = isinstance(placed.workers.replicas, ReplicaRange)
        if is_range and placed.workers.scaled_by is None:
            message = (
                "got a range, and nothing decides how many of its workers run; add 'scaledBy: {load: {}}', "
                "or write one number"
            )
            yield Finding((*placed.path, "replicas"), message)
        if not is_range and placed.workers.scaled_by is not None:
            message = (
                f"needs a range of workers, got 'replicas: {placed.workers.replicas}'; write 'replicas: "
                f"{{min: {placed.workers.replicas}, max: ...}}', or remove 'scaledBy'"
            )
            yield Finding((*placed.path, "scaledBy"), message)


@rule
def range_is_in_order(spec: Spec) -> Iterator[Finding]:
    """Check that a range of replicas starts at 1 or more, and does not end before it starts."""
    for placed in each_workers(spec):
        replicas, path = placed.workers.replicas, (*placed.path, "replicas")
        if not isinstance(replicas, ReplicaRange):
            continue
        if replicas.min == 0 and not placed.workers.is_lent:
            message = (
                "got 0, it must be at least 1: nothing holds a request while the first worker starts, so "
                "requests would fail; set it to 1"
            )
            yield Finding((*path, "min"), message)
        elif replicas.min > replicas.max:
            message = f"got {replicas.min}, 'max' is {replicas.max}; lower it, or raise 'max'"
            yield Finding((*path, "min"), message)


@rule
def floors_are_within_the_range(spec: Spec) -> Iterator[Finding]:
    """Check that floors are above the range's `min` and at most its `max`."""
    for placed, path, floor in _floors(spec):
        replicas = placed.workers.replicas
        if isinstance(replicas, ReplicaRange) and not replicas.min < floor.replicas <= replicas.max:
            message = (
                f"got {floor.replicas}, a floor must be above 'min' ({replicas.min}) and at most 'max' "
                f"({replicas.max}); change it, or the range"
            )
            yield Finding((*path, "replicas"), message)


@rule
def floor_times_are_accepted(spec: Spec) -> Iterator[Finding]:
    """Check that KEDA accepts the times of floors, and that a floor does not end when it starts."""
    for _, path, floor in _floors(spec):
        for key, text in (("start", floor.start), ("end", floor.end)):
            faults = "; ".join(keda_cron_faults(text))
            if faults:
                yield Finding((*path, key), f"got {quote(text)}; {faults}")
        if floor.start == floor.end:
            message = f"got {quote(floor.end)}, which is also 'start': the floor has no time; change one"
            yield Finding((*path, "end"), message)


@rule
def time_zone_is_known(spec: Spec) -> Iterator[Finding]:
    """Check that the time zone of a floor is in the IANA database, if this machine has it."""
    for _, path, floor in _floors(spec):
        yield from unknown_time_zone(floor.time_zone, (*path, "timeZone"))


@rule
def target_fits_its_metric(spec: Spec) -> Iterator[Finding]:
    """Check that a target is in the unit of its metric, and that it names its metric."""
    for _, path, load in _loads(spec):
        if load.target is None:
            continue
        if load.metric is None:
            message = (
                f"got {load.target:g} without 'metric', so its unit is not known; add 'metric', or remove "
                "'target' and let the plan compute it"
            )
            yield Finding((*path, "target"), message)
        elif load.metric == "kvCacheUse" and load.target >= 1:
            message = (
                f"got {load.target:g}, the used share of the KV cache must be below 1, such as 0.7: workers "
                "are added when it is above the target"
            )
            yield Finding((*path, "target"), message)


@rule
def load_is_measured(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with elastic workers has `observability`, which measures their load."""
    if spec.observability is not None:
        return
    for placed, path, _ in _loads(spec):
        message = (
            f"nothing measures the load of {placed.name}: the Prometheus of 'observability' does; add "
            "'observability: {}' to spec"
        )
        yield Finding(path, message)


@rule
def latency_has_an_objective(spec: Spec) -> Iterator[Finding]:
    """Check that workers that scale by the time to first token have a target, or an objective for it."""
    for placed, path, load in _loads(spec):
        stated = placed.deployment.model.objectives.stated
        if load.metric != "timeToFirstToken" or load.target:
            continue
        if tail_objective(stated, FIRST_TOKEN) is None:
            message = (
                "got 'timeToFirstToken', and the model has no objective from which its target follows; set "
                "'objectives.timeToFirstTokenMs' of the model, or 'target' here"
            )
            yield Finding((*path, "metric"), message)


@rule
def metric_fits_the_role(spec: Spec) -> Iterator[Finding]:
    """Check that each role scales by a load that it causes."""
    for placed, path, load in _loads(spec):
        if placed.role == "decode" and load.metric in ("timeToFirstToken", "queueLength"):
            message = (
                f"got {quote(load.metric)}, which depends on the prefill workers; scale decode workers on "
                "'tokensInFlight' or 'kvCacheUse'"
            )
            yield Finding((*path, "metric"), message)
        if placed.role == "prefill" and load.metric == "kvCacheUse":
            message = (
                "got 'kvCacheUse', but prefill workers hand their KV cache to decode workers; scale them on "
                "'tokensInFlight', 'queueLength' or 'timeToFirstToken'"
            )
            yield Finding((*path, "metric"), message)


@rule
def roles_scale_together(spec: Spec) -> Iterator[Finding]:
    """Check that prefill and decode workers are both elastic or both fixed, so that they keep their ratio."""
    for placed in each_workers(spec):
        both = placed.deployment.deployment.disaggregated
        if both is None or placed.workers.scaled_by is not None:
            continue
        other = both.decode if placed.role == "prefill" else both.prefill
        if other.scaled_by is not None:
            message = (
                f"got 'replicas: {placed.workers.maximum}' without 'scaledBy', while the other role scales: "
                "this one would limit it; give it a range and 'scaledBy' too"
            )
            yield Finding((*placed.path, "replicas"), message, "warning")


@rule
def stated_requests_are_counted_with(spec: Spec) -> Iterator[Finding]:
    """Check that something follows the load of workers whose requests at once are stated."""
    loaded = {placed.deployment.path for placed, _, _ in _loads(spec)}
    for placed in each_workers(spec):
        stated = placed.workers.requests_at_once
        if stated is not None and placed.deployment.path not in loaded:
            message = (
                f"got {stated}, but no workers of {placed.deployment.release} follow the load, so nothing "
                "counts with it; give them a range and 'scaledBy: {load: {}}', or remove it"
            )
            yield Finding((*placed.path, "requestsAtOnce"), message, "warning")


@rule
def pool_has_an_alternative(spec: Spec) -> Iterator[Finding]:
    """Check that a pool that grows with the load has several instance types, or reserved capacity."""
    pools = {pool.name: (index, pool) for index, pool in usable(spec.pools)}
    for placed, _, _ in _loads(spec):
        index, pool = pools.get(placed.workers.pool, (0, None))
        purchase = pool.purchase if pool else None
        if pool is None or purchase is None or purchase.reservation or purchase.capacity_block:
            continue
        if len(pool.instance_types) == 1:
            message = (
                f"{placed.name} grows on this pool only: while EC2 has no {pool.instance_types[0]}, new "
                "workers wait and requests queue at those that run; name further instance types with the "
                "same accelerator, or reserve capacity"
            )
            yield Finding(("spec", "pools", index, "instanceTypes"), message, "warning")


def unknown_time_zone(name: str, path: Path) -> Iterator[Finding]:
    """Yield an error for a time zone that is not in the IANA database, if this machine has it."""
    if _is_zone("Etc/UTC") and not _is_zone(name):
        message = (
            f"got {quote(name)}, which the IANA database does not have; use a name such as Europe/Berlin"
        )
        yield Finding(path, message)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _loads(spec: Spec) -> Iterator[tuple[PlacedWorkers, Path, LoadScaling]]:
    """Yield the load scaling of all workers that have it, with its place."""
    for placed in each_workers(spec):
        scaled_by = placed.workers.scaled_by
        if scaled_by is not None and scaled_by.load is not None:
            yield placed, (*placed.path, "scaledBy", "load"), scaled_by.load


def _floors(spec: Spec) -> Iterator[tuple[PlacedWorkers, Path, Floor]]:
    """Yield all floors with their place."""
    for placed, path, load in _loads(spec):
        for index, floor in usable(load.floors):
            yield placed, (*path, "floors", index), floor
