"""Rules on queues: names that Kueue gives a meaning, and what it and CloudFormation take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.deployments import each_placement
from inference_blueprints.spec.rules.pools import known_instance_types
from inference_blueprints.spec.types import Model, Pool, Queueing
from inference_blueprints.spec.wording import quote

#: A queue of this name takes every job of its namespace that names none
#: (https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/).
DEFAULT_QUEUE = "default"
#: What a ResourceFlavor takes, of which one is that of the accelerators (its definition, `maxItems`).
MAXIMUM_TOLERATIONS = 8
#: Each queue lists all pools that it borrows of, so the template grows with the square of their number.
MAXIMUM_BORROWING_POOLS = 32


def no_queue_takes_every_job(queueing: Queueing, pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that no pool's queue takes jobs that name none, such as the platform's own."""
    for index, pool in pools.items() if queueing.kueue else ():
        if pool.name == DEFAULT_QUEUE:
            message = f"got {quote(pool.name)}, Kueue gives a queue of this name every job; rename the pool"
            yield Finding(("spec", "pools", index, "name"), message)


def taints_can_be_tolerated(queueing: Queueing, pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a pool with a queue has no more taints than Kueue lets jobs tolerate."""
    for index, pool in pools.items() if queueing.kueue else ():
        own = MAXIMUM_TOLERATIONS - any(each.accelerator for each in known_instance_types(pool))
        if len(pool.taints) > own:
            message = f"got {len(pool.taints)} taints, jobs of a queue tolerate {own}; remove some"
            yield Finding(("spec", "pools", index, "taints"), message)


def borrowing_fits_a_template(queueing: Queueing, pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that queues that borrow of each other fit a template."""
    if not (queueing.kueue and queueing.kueue.borrowing):
        return
    if len(pools) > MAXIMUM_BORROWING_POOLS:
        message = f"got {len(pools)} pools, at most {MAXIMUM_BORROWING_POOLS} borrow of each other; remove it"
        yield Finding(("spec", "queueing", "kueue", "borrowing"), message)


def queue_has_something_to_give(
    queueing: Queueing, models: Mapping[int, Model], pools: Mapping[int, Pool]
) -> Iterator[Finding]:
    """Check that the models leave accelerators for the jobs of a pool's queue."""
    if queueing.kueue and queueing.kueue.borrowing:
        return
    taken: Counter[str] = Counter()
    for placed, pool in each_placement(models, pools):
        taken[pool.name] += placed.workers.replicas * placed.workers.accelerators
    for index, pool in pools.items():
        most = pool.nodes.max * max(
            (each.accelerator_count for each in known_instance_types(pool)), default=0
        )
        if 0 < most <= taken[pool.name]:
            message = f"models take all {most} accelerators: jobs of its queue get none; raise it"
            yield Finding(("spec", "pools", index, "nodes", "max"), message, "warning")
