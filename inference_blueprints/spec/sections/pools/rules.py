"""Rules on the instance types of pools, and on the models that use pools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import inference_catalog as catalog
from inference_blueprints.spec import formats
from inference_blueprints.spec.capacity_dates import moment
from inference_blueprints.spec.derived import each_workers, platform_zones
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import CapacityBlock, EbsSnapshot, Pool, ReservedCapacity, Spec
from inference_blueprints.spec.wording import Path, allowed, duplicates, listing, quote, suggestion
from inference_contracts.errors import Finding

# Rules on how nodes get their images.


@rule
def snapshot_is_baked(spec: Spec) -> Iterator[Finding]:
    """Check that a pool with ebsSnapshot has the id of a snapshot."""
    for path, _, snapshot in _snapshots(spec):
        if snapshot.id is None:
            message = (
                "there is no snapshot yet, so nodes pull their images; deploy, run "
                "`blueprints image-cache bake` with --write, and deploy again"
            )
            yield Finding(path, message, "warning")


@rule
def snapshot_is_no_slower(spec: Spec) -> Iterator[Finding]:
    """Check that a snapshot does not leave NVMe disks unused."""
    for path, pool, _ in _snapshots(spec):
        with_nvme = [each.name for each in pool.types if each.local_nvme_gb]
        if with_nvme:
            message = (
                f"the NVMe of {listing(with_nvme)} stays unused with a snapshot; pulling images onto the "
                "NVMe with 'sociParallelPull' may be faster"
            )
            yield Finding(path, message, "warning")


def _snapshots(spec: Spec) -> Iterator[tuple[Path, Pool, EbsSnapshot]]:
    """Yield the path, pool and section of each ``ebsSnapshot``."""
    for index, pool in usable(spec.pools):
        snapshot = pool.image_acceleration.ebs_snapshot
        if snapshot:
            yield ("spec", "pools", index, "imageAcceleration", "ebsSnapshot"), pool, snapshot


#: Families that AWS sells as Capacity Blocks
#: (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-using.html).
CAPACITY_BLOCK_FAMILIES = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "trn1", "trn2")

#: AWS's limits on tags. A tag beyond them could never select a reservation.
_MAXIMUM_TAG_KEY, _MAXIMUM_TAG_VALUE = 128, 256


@rule
def capacity_block_is_sold(spec: Spec) -> Iterator[Finding]:
    """Check that AWS sells Capacity Blocks of the instance types."""
    for index, pool in usable(spec.pools):
        if pool.purchase.capacity_block is None:
            continue
        for place, name in usable(pool.instance_types):
            if name.partition(".")[0] not in CAPACITY_BLOCK_FAMILIES:
                families = listing(CAPACITY_BLOCK_FAMILIES)
                message = f"got {quote(name)}, AWS sells Capacity Blocks only for the families {families}"
                yield Finding(("spec", "pools", index, "instanceTypes", place), message)


@rule
def block_is_selected_once(spec: Spec) -> Iterator[Finding]:
    """Check that Capacity Blocks are selected either by an id or by tags."""
    for path, block in _blocks(spec):
        given = [key for key, value in (("id", block.id), ("tags", block.tags)) if value is not None]
        if len(given) != 1:
            got = " and ".join(quote(key) for key in given) or "neither"
            yield Finding(path, f"got {got}, expected exactly one of 'id', 'tags'")


@rule
def block_dates_are_of_one_block(spec: Spec) -> Iterator[Finding]:
    """Check that the dates of a Capacity Block are given only with its id."""
    for path, block in _blocks(spec):
        for key, value in (("starts", block.starts), ("ends", block.ends)):
            if value is not None and block.id is None:
                message = "is allowed only with 'id', because tags can select several blocks; remove it"
                yield Finding((*path, key), message)


@rule
def block_dates_exist(spec: Spec) -> Iterator[Finding]:
    """Check that the calendar has the dates of a Capacity Block."""
    for path, block in _blocks(spec):
        for key, value in (("starts", block.starts), ("ends", block.ends)):
            if value and moment(value) is None:
                message = f"got {quote(value)}, which the calendar does not have; correct it"
                yield Finding((*path, key), message)


@rule
def block_starts_before_it_ends(spec: Spec) -> Iterator[Finding]:
    """Check that a Capacity Block starts before it ends."""
    for path, block in _blocks(spec):
        starts, ends = moment(block.starts or ""), moment(block.ends or "")
        if starts and ends and starts >= ends:
            message = f"got {quote(block.ends)}, the block starts at {quote(block.starts)}; correct the dates"
            yield Finding((*path, "ends"), message)


@rule
def reservation_is_of_one_type(spec: Spec) -> Iterator[Finding]:
    """Check that a reservation named by its id is for a pool of one instance type."""
    for path, pool, reserved in _reserved(spec):
        if reserved.id and len(pool.instance_types) > 1:
            count = len(pool.instance_types)
            message = (
                f"got one reservation for {count} instance types, a reservation covers exactly one; list "
                "only that type, or select reservations by 'tags'"
            )
            yield Finding((*path, "id"), message)


@rule
def reservation_tags_can_exist(spec: Spec) -> Iterator[Finding]:
    """Check that a reservation can have the tags that select it."""
    for path, _, reserved in _reserved(spec):
        for key, value in (reserved.tags or {}).items():
            if not 0 < len(key) <= _MAXIMUM_TAG_KEY or not 0 < len(value) <= _MAXIMUM_TAG_VALUE:
                message = (
                    f"got {quote(key)}: {quote(value)}, expected a key of 1 to {_MAXIMUM_TAG_KEY} characters "
                    f"and a value of 1 to {_MAXIMUM_TAG_VALUE}; '*' matches any value"
                )
                yield Finding((*path, "tags", key), message)


def _blocks(spec: Spec) -> Iterator[tuple[Path, CapacityBlock]]:
    """Yield the path and section of each selection of Capacity Blocks."""
    for index, pool in usable(spec.pools):
        if pool.purchase.capacity_block:
            yield ("spec", "pools", index, "purchase", "capacityBlock"), pool.purchase.capacity_block


def _reserved(spec: Spec) -> Iterator[tuple[Path, Pool, ReservedCapacity | CapacityBlock]]:
    """Yield the path, pool and section of each selection of reserved capacity."""
    for index, pool in usable(spec.pools):
        reserved = pool.purchase.reservation or pool.purchase.capacity_block
        if reserved:
            yield ("spec", "pools", index, "purchase", pool.purchase.chosen), pool, reserved


@rule
def types_are_known(spec: Spec) -> Iterator[Finding]:
    """Check that the instance types are in the catalogue."""
    known = catalog.instance_types()
    for index, pool in usable(spec.pools):
        for place, name in usable(pool.instance_types):
            if name not in known:
                family = [other for other in known if other.split(".")[0] == name.split(".")[0]]
                has = listing(family) if family else "none of this family"
                message = f"got {quote(name)}, the catalogue has {has}{suggestion(name, known)}"
                yield Finding(("spec", "pools", index, "instanceTypes", place), message)


@rule
def types_are_offered(spec: Spec) -> Iterator[Finding]:
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


@rule
def types_differ(spec: Spec) -> Iterator[Finding]:
    """Check that no instance type is named twice."""
    for index, pool in usable(spec.pools):
        for place, name in duplicates(pool.instance_types):
            path = ("spec", "pools", index, "instanceTypes", place)
            yield Finding(path, f"got {quote(name)} twice; name each instance type once")


@rule
def types_are_alike(spec: Spec) -> Iterator[Finding]:
    """Check that a pool's instance types have one architecture and accelerator, or one size of processors."""
    traits: Mapping[str, Callable[[catalog.InstanceType], str]] = {
        "architecture": lambda instance_type: instance_type.architecture,
        "accelerator": accelerator_name,
    }
    computing = {
        placed.workers.pool for placed in each_workers(spec) if placed.deployment.model.engine.llama_cpp
    }
    for index, pool in usable(spec.pools):
        known = pool.types
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


@rule
def pool_exists(spec: Spec) -> Iterator[Finding]:
    """Check that the pool of a deployment is in the blueprint."""
    names = list(dict.fromkeys(pool.name for pool in spec.pools))
    for placed in each_workers(spec):
        name = placed.workers.pool
        if name not in names:
            message = f"got {quote(name)}, {allowed('pool', names)}{suggestion(name, names)}"
            yield Finding((*placed.path, "pool"), message)


@rule
def pool_is_used(spec: Spec) -> Iterator[Finding]:
    """Check that each pool is used by a deployment."""
    used = {placed.workers.pool for placed in each_workers(spec)}
    for index, pool in usable(spec.pools):
        if pool.name not in used:
            message = f"no deployment uses the pool {quote(pool.name)}; remove it, or use it"
            yield Finding(("spec", "pools", index), message, "warning")


def _device_name(instance_type: catalog.InstanceType) -> str:
    """Return the name of an instance type's accelerator; processors, on which no model runs, are none."""
    return accelerator_name(instance_type) if instance_type.device_resource else "no accelerator"


def accelerator_name(instance_type: catalog.InstanceType) -> str:
    """Return the name of an instance type's accelerator."""
    return instance_type.accelerator.name if instance_type.accelerator else "no accelerator"


_QUALIFIED_NAME = re.compile(formats.QUALIFIED_NAME)

#: Domains whose keys Kubernetes, Karpenter, device plug-ins and this library set themselves.
RESERVED_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "amazonaws.com",
    "nvidia.com",
    "inference-blueprints",
)


@rule
def minimum_is_within_the_maximum(spec: Spec) -> Iterator[Finding]:
    """Check that the minimum of nodes is not above the maximum."""
    for index, pool in usable(spec.pools):
        if pool.nodes.min > pool.nodes.max:
            message = f"got {pool.nodes.min}, 'max' is {pool.nodes.max}; lower it, or raise 'max'"
            yield Finding(("spec", "pools", index, "nodes", "min"), message)


@rule
def pool_zone_is_the_platforms(spec: Spec) -> Iterator[Finding]:
    """Check that the zone of a pool is a zone of the platform."""
    if spec.environment.region not in catalog.regions():
        return
    zones = platform_zones(spec.environment)
    for index, pool in usable(spec.pools):
        zone = pool.availability_zone
        if zone is not None and zone not in zones:
            advice = suggestion(zone, zones)
            if zone in catalog.regions()[spec.environment.region]:
                advice = "; use one of them, or list all zones in `environment.availabilityZones`"
            message = f"got {quote(zone)}, the platform's {allowed('zone', zones)}{advice}"
            yield Finding(("spec", "pools", index, "availabilityZone"), message)


@rule
def labels_are_the_users(spec: Spec) -> Iterator[Finding]:
    """Check that Kubernetes accepts the labels and the platform does not set them itself."""
    for index, pool in usable(spec.pools):
        for key in pool.labels:
            path = ("spec", "pools", index, "labels", key)
            if not _QUALIFIED_NAME.fullmatch(key):
                yield Finding(path, f"got the key {quote(key)}, expected {_key_words()}")
            elif _is_reserved(key):
                yield Finding(path, _reserved_words(key))


@rule
def taints_are_the_users(spec: Spec) -> Iterator[Finding]:
    """Check that the platform does not set the taints itself, and that they differ."""
    for index, pool in usable(spec.pools):
        path = ("spec", "pools", index, "taints")
        for place, taint in usable(pool.taints):
            if _is_reserved(taint.key):
                yield Finding((*path, place, "key"), _reserved_words(taint.key))
        for place, name in duplicates(f"{taint.key}:{taint.effect}" for taint in pool.taints):
            yield Finding((*path, place), f"got {quote(name)} twice; name each key and effect once")


def _is_reserved(key: str) -> bool:
    """Return whether a key is in a reserved domain or a subdomain of one."""
    domain = key.rpartition("/")[0]
    return any(domain == reserved or domain.endswith(f".{reserved}") for reserved in RESERVED_DOMAINS)


def _key_words() -> str:
    """Return the description of a key's format."""
    return formats.DESCRIPTIONS[formats.QUALIFIED_NAME]


def _reserved_words(key: str) -> str:
    """Return the message for a reserved key."""
    domain = key.rpartition("/")[0]
    return f"got {quote(key)}, the platform sets keys of {quote(domain)}; use your own domain"
