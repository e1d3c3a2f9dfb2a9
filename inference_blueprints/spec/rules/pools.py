"""Rules on pools: what their instance types have in common, and who uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from inference_blueprints import catalog
from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.deployments import each_placement, each_workers
from inference_blueprints.spec.types import Model, Pool
from inference_blueprints.spec.wording import allowed, duplicates, listing, quote, suggestion

#: Whose accelerators an engine runs on.
ENGINE_MANUFACTURERS: Mapping[str, str] = MappingProxyType(
    {"vllm": "nvidia", "sglang": "nvidia", "tensorrtLlm": "nvidia"}
)


def instance_types_are_known(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that the catalogue has the instance types."""
    known = catalog.instance_types()
    for index, pool in pools.items():
        for place, name in enumerate(pool.instance_types):
            if name not in known:
                family = [other for other in known if other.split(".")[0] == name.split(".")[0]]
                has = listing(family) if family else "none of this family"
                message = f"got {quote(name)}, the catalogue has {has}{suggestion(name, known)}"
                yield Finding(("spec", "pools", index, "instanceTypes", place), message)


def instance_types_differ(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that no instance type is named twice."""
    for index, pool in pools.items():
        for place, name in duplicates(pool.instance_types):
            path = ("spec", "pools", index, "instanceTypes", place)
            yield Finding(path, f"got {quote(name)} twice; name each instance type once")


def instance_types_are_alike(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that nodes of a pool are interchangeable: one architecture, one accelerator."""
    traits: Mapping[str, Callable[[catalog.InstanceType], str]] = {
        "architecture": lambda instance_type: instance_type.architecture,
        "accelerator": accelerator_name,
    }
    for index, pool in pools.items():
        known = known_instance_types(pool)
        for trait, value in traits.items():
            if len({value(instance_type) for instance_type in known}) > 1:
                got = ", ".join(f"{instance_type.name} ({value(instance_type)})" for instance_type in known)
                message = f"got {got}; a pool has one {trait}, make a pool of each"
                yield Finding(("spec", "pools", index, "instanceTypes"), message)


def pool_exists(models: Mapping[int, Model], pool_names: Sequence[str]) -> Iterator[Finding]:
    """Check that a deployment's pool is one of the blueprint's."""
    names = list(dict.fromkeys(pool_names))
    for placed in each_workers(models):
        name = placed.workers.pool
        if name not in names:
            message = f"got {quote(name)}, {allowed('pool', names)}{suggestion(name, names)}"
            yield Finding((*placed.path, "pool"), message)


def pool_suits_the_engine(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that the pool has accelerators that the engine runs on."""
    for placed, pool in each_placement(models, pools):
        engine = placed.deployment.model.engine.chosen
        needed = ENGINE_MANUFACTURERS[engine]
        for instance_type in known_instance_types(pool):
            accelerator = instance_type.accelerator
            if accelerator is None or accelerator.manufacturer != needed:
                message = (
                    f"got {quote(pool.name)} with {instance_type.name} ({accelerator_name(instance_type)}), "
                    f"the engine {quote(engine)} needs accelerators of {needed}; name another pool"
                )
                yield Finding((*placed.path, "pool"), message)
                break


def pool_is_used(models: Mapping[int, Model], pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that some deployment uses the pool."""
    used = {placed.workers.pool for placed in each_workers(models)}
    for index, pool in pools.items():
        if pool.name not in used:
            message = f"no deployment names the pool {quote(pool.name)}; remove it, or use it"
            yield Finding(("spec", "pools", index), message, "warning")


def known_instance_types(pool: Pool) -> list[catalog.InstanceType]:
    """Return what the catalogue has of a pool's instance types."""
    known = catalog.instance_types()
    return [known[name] for name in pool.instance_types if name in known]


def accelerator_name(instance_type: catalog.InstanceType) -> str:
    """Return the accelerator of an instance type in words."""
    return instance_type.accelerator.name if instance_type.accelerator else "no accelerator"
