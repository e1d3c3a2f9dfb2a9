"""Rules on job queues of pools: reserved names, and limits of Kueue and CloudFormation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inference_blueprints.spec.derived import each_placement
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Kueue, Spec
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding

#: A queue of this name gets every job of its namespace that does not name a queue
#: (https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/).
DEFAULT_QUEUE = "default"
#: Limit of a ResourceFlavor (its definition, `maxItems`). One toleration is for the accelerators.
MAXIMUM_TOLERATIONS = 8
#: Each queue lists all pools from which it borrows, so the template grows with the square of their number.
MAXIMUM_BORROWING_POOLS = 32


@rule
def no_queue_takes_every_job(spec: Spec) -> Iterator[Finding]:
    """Check that no pool has the name of Kueue's default queue, which gets all jobs without a queue."""
    for index, pool in usable(spec.pools) if _kueue(spec) else ():
        if pool.name == DEFAULT_QUEUE:
            message = (
                f"got {quote(pool.name)}, Kueue sends every job without a queue to the queue of this "
                "name; rename the pool"
            )
            yield Finding(("spec", "pools", index, "name"), message)


@rule
def taints_can_be_tolerated(spec: Spec) -> Iterator[Finding]:
    """Check that a pool with a queue has no more taints than Kueue lets jobs tolerate."""
    for index, pool in usable(spec.pools) if _kueue(spec) else ():
        own = MAXIMUM_TOLERATIONS - any(each.device_resource for each in pool.types)
        if len(pool.taints) > own:
            message = (
                f"got {len(pool.taints)} taints, jobs of a queue can tolerate at most {own}; remove some"
            )
            yield Finding(("spec", "pools", index, "taints"), message)


@rule
def borrowing_fits_a_template(spec: Spec) -> Iterator[Finding]:
    """Check that queues that borrow from each other fit a template."""
    kueue = _kueue(spec)
    if kueue and kueue.borrowing and len(spec.pools) > MAXIMUM_BORROWING_POOLS:
        message = (
            f"got {len(spec.pools)} pools, at most {MAXIMUM_BORROWING_POOLS} can borrow from each "
            "other; remove 'borrowing', or use fewer pools"
        )
        yield Finding(("spec", "queueing", "kueue", "borrowing"), message)


@rule
def queue_has_something_to_give(spec: Spec) -> Iterator[Finding]:
    """Check that models leave accelerators for the jobs of a pool."""
    kueue = _kueue(spec)
    if kueue is None or kueue.borrowing:
        return
    taken: Counter[str] = Counter()
    for placed, pool in each_placement(spec):
        taken[pool.name] += placed.workers.maximum * placed.workers.accelerators
    for index, pool in usable(spec.pools):
        maximum = pool.nodes.max * max((each.accelerator_count for each in pool.types), default=0)
        if 0 < maximum <= taken[pool.name] and pool.shared is None:
            message = f"models use all {maximum} accelerators, so jobs of this queue get none; raise 'max'"
            yield Finding(("spec", "pools", index, "nodes", "max"), message, "warning")


def _kueue(spec: Spec) -> Kueue | None:
    """Return the section of Kueue; None without queues."""
    return spec.queueing.kueue if spec.queueing else None
