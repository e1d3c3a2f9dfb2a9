"""Rules on the instance types of pools, and on the models that use pools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import inference_catalog as catalog
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.rules.deployments import each_workers
from inference_blueprints.spec.types import Pool, Spec
from inference_blueprints.spec.wording import allowed, duplicates, listing, quote, suggestion
from inference_contracts.errors import Finding


def instance_types_are_known(spec: Spec) -> Iterator[Finding]:
    """Check that the instance types are in the catalogue."""
    known = catalog.instance_types()
    for index, pool in usable(spec.pools):
        for place, name in usable(pool.instance_types):
            if name not in known:
                family = [other for other in known if other.split(".")[0] == name.split(".")[0]]
                has = listing(family) if family else "none of this family"
                message = f"got {quote(name)}, the catalogue has {has}{suggestion(name, known)}"
                yield Finding(("spec", "pools", index, "instanceTypes", place), message)


def instance_types_are_offered(spec: Spec) -> Iterator[Finding]:
    """Check that EC2 offered the instance types in the region when the catalogue's table was recorded."""
    # A warning, because AWS adds types to regions. Types and regions that were not recorded are unknown.
    table, region = catalog.offered_instance_types(), spec.environment.region
    here = table.get(region)
    if here is None:
        return
    for index, pool in usable(spec.pools):
        for place, name in usable(pool.instance_types):
            elsewhere = [other for other, names in table.items() if name in names]
            if elsewhere and name not in here:
                message = (
                    f"EC2 did not offer {quote(name)} in {region} when the catalogue was recorded, but in "
                    f"{listing(elsewhere)}; use another type or region, or ask EC2 with `blueprints doctor`"
                )
                yield Finding(("spec", "pools", index, "instanceTypes", place), message, "warning")


def instance_types_differ(spec: Spec) -> Iterator[Finding]:
    """Check that no instance type is named twice."""
    for index, pool in usable(spec.pools):
        for place, name in duplicates(pool.instance_types):
            path = ("spec", "pools", index, "instanceTypes", place)
            yield Finding(path, f"got {quote(name)} twice; name each instance type once")


def instance_types_are_alike(spec: Spec) -> Iterator[Finding]:
    """Check that a pool's instance types have one architecture and accelerator, or one size of processors."""
    traits: Mapping[str, Callable[[catalog.InstanceType], str]] = {
        "architecture": lambda instance_type: instance_type.architecture,
        "accelerator": accelerator_name,
    }
    computing = {
        placed.workers.pool for placed in each_workers(spec) if placed.deployment.model.engine.llama_cpp
    }
    for index, pool in usable(spec.pools):
        known = known_instance_types(pool)
        checked = dict(traits)
        if pool.name in computing:
            checked["number of vCPUs"] = lambda instance_type: f"{instance_type.vcpu} vCPUs"
        else:
            checked["accelerator"] = _device_name
        for trait, value in checked.items():
            if len({value(instance_type) for instance_type in known}) > 1:
                got = ", ".join(f"{instance_type.name} ({value(instance_type)})" for instance_type in known)
                message = f"got {got}; all types of a pool must have the same {trait}; make one pool for each"
                yield Finding(("spec", "pools", index, "instanceTypes"), message)


def pool_exists(spec: Spec) -> Iterator[Finding]:
    """Check that the pool of a deployment is in the blueprint."""
    names = list(dict.fromkeys(pool.name for pool in spec.pools))
    for placed in each_workers(spec):
        name = placed.workers.pool
        if name not in names:
            message = f"got {quote(name)}, {allowed('pool', names)}{suggestion(name, names)}"
            yield Finding((*placed.path, "pool"), message)


def pool_is_used(spec: Spec) -> Iterator[Finding]:
    """Check that each pool is used by a deployment."""
    used = {placed.workers.pool for placed in each_workers(spec)}
    for index, pool in usable(spec.pools):
        if pool.name not in used:
            message = f"no deployment uses the pool {quote(pool.name)}; remove it, or use it"
            yield Finding(("spec", "pools", index), message, "warning")


def known_instance_types(pool: Pool) -> list[catalog.InstanceType]:
    """Return a pool's instance types that are in the catalogue."""
    known = catalog.instance_types()
    return [known[name] for name in pool.instance_types if name in known]


def _device_name(instance_type: catalog.InstanceType) -> str:
    """Return the name of an instance type's accelerator; processors, on which no model runs, are none."""
    return accelerator_name(instance_type) if instance_type.device_resource else "no accelerator"


def accelerator_name(instance_type: catalog.InstanceType) -> str:
    """Return the name of an instance type's accelerator."""
    return instance_type.accelerator.name if instance_type.accelerator else "no accelerator"
