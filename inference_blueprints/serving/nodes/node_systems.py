"""Which operating system the nodes of each pool boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.serving.engines.kv_cache import kv_transfer
from inference_blueprints.serving.resolved import ResolvedWorkers, UnresolvedError, resolve
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.invalid_values import usable
from inference_catalog.catalogue import shipped
from inference_catalog.operating_system import OperatingSystem, SystemName


def node_systems(blueprint: spec.Blueprint) -> Mapping[str, SystemName]:
    """Return the operating system of each pool by the pool's name.

    Raises UnresolvedError if no operating system has what a pool needs.
    """
    paired = {workers.pool.name for workers in paired_workers(blueprint)}
    systems = {}
    for pool in blueprint.spec.pools:
        system = pool_system(pool, paired=pool.name in paired)
        if system is None:
            raise UnresolvedError(f"no operating system has what pool '{pool.name}' needs")
        systems[pool.name] = system.name
    return systems


def pool_system(pool: spec.Pool, *, paired: bool) -> OperatingSystem | None:
    """Return the first operating system of the catalogue that has what a pool needs; None if none has.

    paired: Whether the pool has paired workers.
    """
    starts_from_snapshot = pool.image_acceleration.ebs_snapshot is not None
    for system in shipped().operating_systems.values():
        if (
            (system.pairs_efa_with_gpus or not paired)
            and (system.starts_from_snapshot or not starts_from_snapshot)
            and not unbootable_families(pool, system)
        ):
            return system
    return None


def unbootable_families(pool: spec.Pool, system: OperatingSystem) -> list[str]:
    """Return the families of a pool's instance types that do not boot an operating system."""
    families = dict.fromkeys(each.family for each in pool.types)
    return [family for family in families if family in system.unbootable_families]


def paired_workers(blueprint: spec.Blueprint) -> Iterator[ResolvedWorkers]:
    """Yield the workers that need the EFA interfaces beside their own GPUs.

    These are workers that move KV cache over EFA and use a part of a node: NIXL maps each GPU to the EFA
    devices beside it (``src/plugins/libfabric/README.md`` of ai-dynamo/nixl), and the pod may have others. A
    worker with all GPUs of a node has all its interfaces, too.
    """
    for model_index, model in usable(blueprint.spec.models):
        for deployment_index, _ in usable(model.deployments):
            try:
                roles = resolve(blueprint, model_index, deployment_index)
            except UnresolvedError:
                continue
            yield from (workers for workers in roles if _is_paired(workers))


def _is_paired(workers: ResolvedWorkers) -> bool:
    """Whether workers move KV cache over EFA and leave GPUs of a node to others."""
    return kv_transfer(workers) == "libfabric" and any(
        instance_type.accelerator_count > workers.accelerators_per_node for instance_type in workers.types
    )
