"""What ECS cannot do, or does differently, of what a blueprint may say: the one list of reasons.

``validate`` reports it, and the table in ``docs/ecs.md`` is generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from inference_blueprints.spec.derived import each_placement, each_workers
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Blueprint, Pool
from inference_blueprints.spec.wording import Path
from inference_catalog.ecs_hosts import host_kind
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass

#: Capacity providers of a cluster, of which Fargate has two (Amazon ECS Developer Guide, "Service quotas").
_MAX_PROVIDERS, _FARGATE_PROVIDERS = 20, 2


@dataclass(frozen=True, slots=True)
class EcsLimit:
    """Something that ECS refuses, or that has another effect there."""

    name: str
    """Name for tests and the conformance suite."""
    setting: str
    """The keys, as the docs name them."""
    reason: str
    """Why, with the document or issue that says so."""
    instead: str
    """What to do."""
    places: Callable[[Blueprint], Iterator[Path]]
    """Returns the places in a blueprint that it is about."""
    severity: Literal["error", "warning"] = "error"
    """``error`` refuses the blueprint, ``warning`` says that something differs."""

    @property
    def message(self) -> str:
        """What ``validate`` says."""
        return f"{self.reason}; {self.instead}"

    def findings(self, blueprint: Blueprint) -> Iterator[Finding]:
        """Yield a finding for each place."""
        for path in self.places(blueprint):
            yield Finding(path, self.message, self.severity)


def _llm_d(blueprint: Blueprint) -> Iterator[Path]:
    for index, model in usable(blueprint.spec.models):
        if model.stack.llm_d:
            yield ("spec", "models", index, "stack", "llmD")


def _kueue(blueprint: Blueprint) -> Iterator[Path]:
    if blueprint.spec.queueing and blueprint.spec.queueing.kueue:
        yield ("spec", "queueing", "kueue")


def _several_hosts(blueprint: Blueprint) -> Iterator[Path]:
    by_name = {pool.name: pool for _, pool in usable(blueprint.spec.pools)}
    for placed in each_workers(blueprint.spec):
        pool = by_name.get(placed.workers.pool)
        counts = [each.accelerator_count for each in pool.types] if pool else []
        if counts and placed.workers.accelerators > max(counts):
            yield placed.path


def _snapshots(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if pool.image_acceleration.ebs_snapshot:
            yield ("spec", "pools", index, "imageAcceleration", "ebsSnapshot")


def _repaired_by(owner: str) -> Callable[[Blueprint], Iterator[Path]]:
    def places(blueprint: Blueprint) -> Iterator[Path]:
        for index, pool in usable(blueprint.spec.pools):
            if pool.repaired_by == owner:
                yield ("spec", "pools", index, "repairedBy")

    return places


def _batch_pods(blueprint: Blueprint) -> Iterator[Path]:
    batch = blueprint.spec.batch
    if batch and batch.workers.eks:
        yield ("spec", "batch", "workers", "eks")


def _efa_counts(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if pool.efa and len({each.efa_interfaces for each in pool.types}) > 1:
            yield ("spec", "pools", index, "instanceTypes")


def _providers(blueprint: Blueprint) -> Iterator[Path]:
    wanted = sum(2 if _falls_back(pool) else 1 for _, pool in usable(blueprint.spec.pools))
    if wanted > _MAX_PROVIDERS - _FARGATE_PROVIDERS:
        yield ("spec", "pools")


def _reservation_tags(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        path = ("spec", "pools", index, "purchase")
        if pool.purchase.reservation and pool.purchase.reservation.tags:
            yield (*path, "reservation", "tags")
        if pool.purchase.capacity_block and pool.purchase.capacity_block.tags:
            yield (*path, "capacityBlock", "tags")


def _arm(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        types = pool.types
        if any(each.architecture == "arm64" and each.device_resource for each in types):
            yield ("spec", "pools", index, "instanceTypes")


def _neuron_counts(pool: Pool) -> set[int]:
    """Return how many Neuron devices the types of a pool have; empty for other pools."""
    types = pool.types
    return {each.accelerator_count for each in types if host_kind(each) == "neuron"}


def _neuron_types(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        types = pool.types
        if _neuron_counts(pool) and len({(each.accelerator_count, each.vcpu) for each in types}) > 1:
            yield ("spec", "pools", index, "instanceTypes")


def _neuron_sizes(blueprint: Blueprint) -> Iterator[Path]:
    sizes: dict[str, int] = {}
    for placed, pool in each_placement(blueprint.spec):
        if _neuron_counts(pool) and sizes.setdefault(pool.name, placed.workers.accelerators) != (
            placed.workers.accelerators
        ):
            yield (*placed.path, "tensorParallelSize")


def _neuron_health(blueprint: Blueprint) -> Iterator[Path]:
    pools = usable(blueprint.spec.pools)
    if blueprint.spec.gpu_health and any(_neuron_counts(pool) for _, pool in pools):
        yield ("spec", "gpuHealth")


def _sglang_ranks(blueprint: Blueprint) -> Iterator[Path]:
    by_name = {pool.name: pool for _, pool in usable(blueprint.spec.pools)}
    for placed in each_workers(blueprint.spec):
        pool = by_name.get(placed.workers.pool)
        if pool is None or placed.deployment.model.engine.sglang is None:
            continue
        several = any(each.accelerator_count >= 2 * placed.workers.accelerators for each in pool.types)
        if several and (placed.workers.data_parallel_size or 1) > 1:
            yield (*placed.path, "dataParallelSize")


def _elastic_shared_pools(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if pool.shared is not None and (pool.nodes.min != pool.nodes.max or pool.purchase.spot):
            yield ("spec", "pools", index, "shared")


def _neuron_shared_pools(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if pool.shared is not None and _neuron_counts(pool):
            yield ("spec", "pools", index, "shared")


def _shifted_floors(blueprint: Blueprint) -> Iterator[Path]:
    if blueprint.spec.capacity_shift is None:
        return
    for placed in each_workers(blueprint.spec):
        if (
            placed.workers.scaled_by
            and placed.workers.scaled_by.load
            and placed.workers.scaled_by.load.floors
        ):
            yield (*placed.path, "scaledBy", "load", "floors")


def _keys_of_eks(blueprint: Blueprint) -> Iterator[Path]:
    section = blueprint.spec.cluster.ecs
    if section is None:
        return
    given = {
        "version": section.version,
        "endpointAccess": section.endpoint_access,
        "extendedSupport": section.extended_support,
    }
    for name, value in given.items():
        if value is not None:
            yield ("spec", "cluster", "ecs", name)


def runs_commands(blueprint: Blueprint) -> bool:
    """Return whether ECS Exec may run commands in containers of models."""
    section = blueprint.spec.cluster.ecs
    return section is not None and section.execute_command is True


def _commands(blueprint: Blueprint) -> Iterator[Path]:
    if runs_commands(blueprint):
        yield ("spec", "cluster", "ecs", "executeCommand")


def _taints(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if pool.taints:
            yield ("spec", "pools", index, "taints")


def _labels(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if pool.labels:
            yield ("spec", "pools", index, "labels")


def _falls_back(pool: Pool) -> bool:
    return pool.purchase.spot is not None and pool.purchase.spot.on_demand_fallback


def _fall_backs(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if _falls_back(pool):
            yield ("spec", "pools", index, "purchase", "spot", "onDemandFallback")


def _soci(blueprint: Blueprint) -> Iterator[Path]:
    for index, pool in usable(blueprint.spec.pools):
        if "image_acceleration" in pool.model_fields_set and pool.image_acceleration.soci_parallel_pull:
            yield ("spec", "pools", index, "imageAcceleration", "sociParallelPull")


#: Refusals first, then what differs.
ECS_LIMITS: tuple[EcsLimit, ...] = (
    EcsLimit(
        "llm-d",
        "`stack: {llmD: {}}`",
        "llm-d's router finds its workers by Kubernetes pods; without Kubernetes it reads a file that "
        "nothing keeps for tasks that come and go, and several routers do not share the events of the "
        "workers' caches (llm-d-router#2959)",
        "use stack: {dynamo: {}}, or cluster: {eks: …}",
        _llm_d,
    ),
    EcsLimit(
        "kueue",
        "`queueing: {kueue: …}`",
        "Kueue admits Kubernetes Jobs, and ECS has neither these nor its queues",
        "remove 'queueing' and use AWS Batch for other jobs of the account, or cluster: {eks: …}",
        _kueue,
    ),
    EcsLimit(
        "several-hosts",
        "a worker that spans several hosts",
        "the processes of such a worker start and end together, and each knows its rank and the address of "
        "the first; an ECS service replaces every task by itself, tasks have no ordinal, and no placement "
        "keeps them in one placement group",
        "use a type with more accelerators, quantised weights, or cluster: {eks: …}",
        _several_hosts,
    ),
    EcsLimit(
        "ebs-snapshot",
        "`imageAcceleration: {ebsSnapshot: …}`",
        "a snapshot holds the images of EKS nodes for containerd, and hosts of ECS have Docker's store",
        "remove 'imageAcceleration': hosts pull the images of their pool before they join",
        _snapshots,
    ),
    EcsLimit(
        "nv-sentinel",
        "`repairedBy: nvSentinel`",
        "NVSentinel acts on Kubernetes nodes",
        "remove 'repairedBy', or use cluster: {eks: …}",
        _repaired_by("nvSentinel"),
    ),
    EcsLimit(
        "batch-pods",
        "`batch: {workers: {eks: {}}}`",
        "there is no EKS cluster for the pods of batch",
        "remove it, or set workers: {ecs: {}}: the workers are tasks on Fargate",
        _batch_pods,
    ),
    EcsLimit(
        "efa-counts",
        "a pool with EFA and types with different numbers of interfaces",
        "a task names the EFA devices of its host, and a missing one stops the container",
        "make one pool per number of interfaces",
        _efa_counts,
    ),
    EcsLimit(
        "pools",
        "more than 18 pools, where Spot with on-demand fallback counts twice",
        "an ECS cluster has at most 20 capacity providers, and two are those of Fargate",
        "use fewer pools, or a second platform",
        _providers,
    ),
    EcsLimit(
        "reservation-tags",
        "`tags` of reservations and Capacity Blocks",
        "a launch template names one reservation by ID, and a group of reservations has a fixed list of "
        "members instead of tags (EC2 API Reference, CapacityReservationTarget)",
        "set 'id', with one pool per reservation",
        _reservation_tags,
    ),
    EcsLimit(
        "arm64",
        "pools with Arm processors and GPUs",
        "AWS publishes its ECS image for GPUs for x86 only (aws/amazon-ecs-ami)",
        "use types with x86 processors, or cluster: {eks: …}",
        _arm,
    ),
    EcsLimit(
        "neuron-types",
        "a pool of Inferentia or Trainium with types that differ in their devices or vCPUs",
        "a task names the Neuron devices of its host, which ECS does not count, so a host gets as many tasks "
        "as its vCPUs have room for",
        "make one pool per type",
        _neuron_types,
    ),
    EcsLimit(
        "neuron-sizes",
        "workers with different numbers of Neuron devices in one pool",
        "ECS does not know which devices of a host are free, so each host is divided into equal parts",
        "make one pool per 'tensorParallelSize'",
        _neuron_sizes,
    ),
    EcsLimit(
        "neuron-health",
        "`gpuHealth` with a pool of Inferentia or Trainium",
        "ECS does not count the Neuron devices of a host, and no exporter of their metrics runs there, so "
        "every such host would look as if its devices were missing",
        "remove 'gpuHealth', or use cluster: {eks: …}",
        _neuron_health,
    ),
    EcsLimit(
        "sglang-ranks",
        "SGLang's data parallel workers that share a host",
        "SGLang derives the ports of its ranks from one fixed port, and the tasks of a host share its ports",
        "give a worker all accelerators of its host, or use vLLM",
        _sglang_ranks,
    ),
    EcsLimit(
        "shared-elastic",
        "a `shared` pool with Spot, or with `nodes.min` below `nodes.max`",
        "ECS ends no task so that a more important one finds a place, so who has which hosts is decided for "
        "a fixed number of them: for a task that waits until another one has stopped, managed scaling would "
        'start a host (Amazon ECS Developer Guide, "Automatically manage Amazon ECS capacity with cluster '
        'auto scaling")',
        "set 'nodes.min' to 'nodes.max' and buy on demand or reserved hosts, or use cluster: {eks: …}",
        _elastic_shared_pools,
    ),
    EcsLimit(
        "shared-neuron",
        "a `shared` pool of Inferentia or Trainium",
        "ECS does not count the Neuron devices of a host, so nobody knows which are free",
        "make one pool per model, or use cluster: {eks: …}",
        _neuron_shared_pools,
    ),
    EcsLimit(
        "shifted-floors",
        "`capacityShift` with `floors` by schedule",
        "on ECS a scheduled action and the capacity shift set the same number, the smallest capacity of the "
        "service, so each would undo the other",
        "remove 'floors': the shift forecasts from yesterday's and last week's demand",
        _shifted_floors,
    ),
    EcsLimit(
        "keys-of-eks",
        "`version`, `endpointAccess`, `extendedSupport`",
        "ECS has no Kubernetes version and no endpoint, so this key has no effect",
        "remove it when the file no longer changes between eks and ecs",
        _keys_of_eks,
        "warning",
    ),
    EcsLimit(
        "execute-command",
        "`executeCommand`",
        "commands run as root, also where the container has another user, and on hosts of Auto Scaling "
        "groups root reaches the credentials of the host (Amazon ECS Developer Guide, ECS Exec)",
        "give few people ecs:ExecuteCommand, and turn it off when you have found what you looked for",
        _commands,
        "warning",
    ),
    EcsLimit(
        "taints",
        "`taints` of a pool",
        "taints have no effect on ECS: only this platform's tasks run on the hosts of a pool",
        "nothing needs to change",
        _taints,
        "warning",
    ),
    EcsLimit(
        "labels",
        "`labels` of a pool",
        "labels become attributes of hosts of Auto Scaling groups, and Managed Instances have none",
        "set cluster: {ecs: {managedInstances: never}} if something reads them",
        _labels,
        "warning",
    ),
    EcsLimit(
        "fall-back",
        "`spot: {onDemandFallback: true}`",
        "on ECS one task of the service and a quarter of the others are always on demand, and a task does "
        "not move to on-demand hosts when Spot has no capacity",
        "use onDemand if all tasks must run",
        _fall_backs,
        "warning",
    ),
    EcsLimit(
        "soci",
        "`imageAcceleration: {sociParallelPull: {}}`",
        "hosts of ECS pull images with Docker, which has no SOCI snapshotter (aws/containers-roadmap#1832); "
        "hosts pull the images of their pool before they join instead",
        "nothing needs to change",
        _soci,
        "warning",
    ),
)


def limits_of(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield the findings of every limit for a blueprint that may have invalid values."""
    for limit in ECS_LIMITS:
        yield from limit.findings(blueprint)
