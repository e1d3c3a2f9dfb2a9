"""Pools that several models share by the hour: who may use them, and what fits.

The largest numbers of workers on such a pool may together exceed it. So everything that adds up the workers
of a pool counts those of `shares`: what each role has if all of real time asks for as much as it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inference_blueprints.spec.derived import PlacedWorkers, each_placement, each_workers
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Pool, ReplicaRange, Spec
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class PoolSharing:
    """A pool with `shared`, and the workers on it."""

    index: int
    """Its place in `pools`."""
    pool: Pool
    roles: Sequence[PlacedWorkers]
    """The workers on it, those that come first in front: real time before batch, then by priority, then as in
    the file."""

    @property
    def accelerators(self) -> int:
        """Accelerators of all its nodes."""
        return self.pool.nodes.max * min(each.accelerator_count for each in self.pool.types)

    @property
    def least(self) -> int:
        """Accelerators of all workers at their smallest number."""
        return sum(each.workers.minimum * each.workers.accelerators for each in self.roles)

    @property
    def most(self) -> int:
        """Accelerators of all workers at their largest number, which may exceed those of the pool."""
        return sum(each.workers.maximum * each.workers.accelerators for each in self.roles)


def shared_pools(spec: Spec) -> Iterator[PoolSharing]:
    """Yield the pools that models share by the hour, and that have accelerators and workers."""
    for index, pool in usable(spec.pools):
        if pool.shared is None or not min((each.accelerator_count for each in pool.types), default=0):
            continue
        roles = [placed for placed, chosen in each_placement(spec) if chosen is pool]
        roles.sort(key=lambda each: (each.workers.is_lent, -(each.deployment.model.priority or 0)))
        if roles:
            yield PoolSharing(index, pool, roles)


def shares(spec: Spec) -> Mapping[Path, int]:
    """Return how many workers each role on a shared pool has if real time asks for all that it may have.

    Each has its smallest number. What is left goes to real time by priority, in whole workers, and then to
    batch. This is also the order in which roles give way while nothing is measured.

    Returns: Numbers of workers by the place of their section.
    """
    found: dict[Path, int] = {}
    for shared in shared_pools(spec):
        free = max(0, shared.accelerators - shared.least)
        for each in shared.roles:
            workers = each.workers
            more = min(workers.maximum - workers.minimum, free // workers.accelerators)
            free -= more * workers.accelerators
            found[each.path] = workers.minimum + more
    return found


@rule
def shared_pools_are_decided_about(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with a shared pool has a capacity shift, which decides who has it."""
    shift = spec.capacity_shift
    for index, pool in usable(spec.pools):
        path = ("spec", "pools", index, "shared")
        if pool.shared is not None and shift is None:
            message = (
                "nothing decides which model has its accelerators at which time; add 'capacityShift: "
                "{action: shift}' to spec, or remove 'shared'"
            )
            yield Finding(path, message)
        elif pool.shared is not None and shift is not None and shift.action == "observe":
            message = (
                "'capacityShift' only observes, so each role keeps the share that its priority gives it, and "
                "workers of batch stay at 'min'; set 'action: shift' when its records suit you"
            )
            yield Finding(path, message, "warning")


@rule
def nodes_of_shared_pools_are_alike(spec: Spec) -> Iterator[Finding]:
    """Check that the nodes of a shared pool have accelerators, and all equally many."""
    for index, pool in usable(spec.pools):
        counts = sorted({each.accelerator_count for each in pool.types})
        if pool.shared is None or (len(counts) == 1 and counts[0]):
            continue
        if counts and counts[-1]:
            message = (
                f"got nodes with {' and '.join(map(str, counts))} accelerators; whether a worker finds "
                "enough of them on one node is only known if all have as many; make one pool per size"
            )
            yield Finding(("spec", "pools", index, "instanceTypes"), message)
        elif counts:
            message = "got a pool without accelerators, and only these are shared; remove 'shared'"
            yield Finding(("spec", "pools", index, "shared"), message)


@rule
def models_on_shared_pools_have_a_priority(spec: Spec) -> Iterator[Finding]:
    """Check that each model on a shared pool has a priority, and that no other model has one."""
    shared = {pool.name for _, pool in usable(spec.pools) if pool.shared is not None}
    users: dict[str, str] = {}
    for placed in each_workers(spec):
        if placed.workers.pool in shared:
            users.setdefault(placed.deployment.model.name, placed.workers.pool)
    for index, model in usable(spec.models):
        path = ("spec", "models", index)
        if model.priority is None and model.name in users:
            message = (
                f"runs on {quote(users[model.name])}, which models share: who comes first is not known; add "
                "'priority', from 0 to 100"
            )
            yield Finding((*path, "name"), message)
        if model.priority is not None and model.name not in users:
            message = "has no effect, because the model is on no pool with 'shared'; remove it"
            yield Finding((*path, "priority"), message, "warning")


@rule
def smallest_numbers_fit_a_shared_pool(spec: Spec) -> Iterator[Finding]:
    """Check that the smallest and the fixed numbers of workers on a shared pool fit it together."""
    for shared in shared_pools(spec):
        if shared.least > shared.accelerators:
            terms = " + ".join(
                f"{each.workers.minimum} * {each.workers.accelerators} ({each.name})"
                for each in shared.roles
                if each.workers.minimum
            )
            message = (
                f"got {shared.pool.nodes.max}, with {shared.accelerators} accelerators; workers that always "
                f"run need {terms} = {shared.least}; raise it, or lower 'replicas.min'"
            )
            yield Finding(("spec", "pools", shared.index, "nodes", "max"), message)


@rule
def each_role_fits_a_shared_pool(spec: Spec) -> Iterator[Finding]:
    """Check that the largest number of workers of each role fits a shared pool, if it has the pool alone."""
    for shared in shared_pools(spec):
        for each in shared.roles:
            size = each.workers.accelerators
            if each.workers.maximum * size > shared.accelerators:
                key = ("max",) if isinstance(each.workers.replicas, ReplicaRange) else ()
                message = (
                    f"got {each.workers.maximum}, and the {shared.accelerators} accelerators of pool "
                    f"{quote(shared.pool.name)} are {shared.accelerators // size} workers of {size}; lower it"
                )
                yield Finding((*each.path, "replicas", *key), message)


@rule
def lent_workers_serve_batch_alone(spec: Spec) -> Iterator[Finding]:
    """Check that workers whose number the capacity shift decides serve batch, and nothing else."""
    shared = {pool.name for _, pool in usable(spec.pools) if pool.shared is not None}
    for placed in each_workers(spec):
        if not placed.workers.is_lent:
            continue
        if placed.workers.pool not in shared:
            fault = f"pool {quote(placed.workers.pool)} is not 'shared'; add 'shared: {{}}' to it"
        elif placed.role != "aggregated":
            fault = "prefill and decode workers come and go together; use 'aggregated'"
        else:
            fault = _other_requests(spec, placed)
        if fault:
            message = f"these workers serve batch alone and may all go, but {fault}"
            yield Finding((*placed.path, "scaledBy", "capacityShift"), message)


def _other_requests(spec: Spec, placed: PlacedWorkers) -> str:
    """Return which requests of others would find no worker of a deployment; empty if there are none."""
    model, name = placed.deployment.model, placed.deployment.deployment.name
    queues = [each for _, each in usable(spec.batch.queues) if each.model == model.name] if spec.batch else []
    jobs = [each for _, each in usable(spec.streaming) if each.model == model.name]
    deployments = {each.name: each for _, each in usable(model.deployments)}
    # As the serving plan says: those that no queue and no job names for itself. Batch alone can wait.
    lists = [*(queue.deployments for queue in queues), *(job.deployments for job in jobs)]
    named = {each for names in lists for each in names}
    unnamed = [each for each in deployments if each not in named] or [*deployments]
    own = [each for each in unnamed if not deployments[each].is_lent] or unnamed
    if name in own and (model.workload is not None or model.real_time is not None):
        return (
            "requests in real time would find none; state lengths as 'workload' of the queue and not of the "
            "model, or name this deployment in 'deployments' of the queue"
        )
    for job in jobs:
        if name in (job.deployments or own):
            return f"the streaming job {quote(job.name)} would find none; give it other 'deployments'"
    serving = [queue for queue in queues if name in (queue.deployments or unnamed)]
    if not serving:
        return "no queue of 'batch' uses them; add one for this model"
    if not any(queue.workload or queue.deployments for queue in serving):
        return (
            f"requests of queue {quote(serving[0].name)} are a part of the model's 'workload', which other "
            "deployments serve; give the queue a 'workload'"
        )
    following = sorted(
        {
            each
            for queue in serving
            for each in queue.deployments or unnamed
            if each in deployments
            for workers in deployments[each].workers.values()
            if workers.scaled_by is not None and not workers.is_lent
        }
    )
    if following:
        return (
            f"the same queue also uses {listing(following)}, whose number follows the load: how much of both "
            "batch may have is not decided together; give those a fixed number as 'replicas', or give this "
            "deployment a queue and a model of its own"
        )
    return ""
