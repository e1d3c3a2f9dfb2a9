"""Rules on how images come to the nodes of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.pools import known_instance_types
from inference_blueprints.spec.types import EbsSnapshot, Pool
from inference_blueprints.spec.wording import Path, listing


def snapshot_is_baked(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a pool which asks for a snapshot of its images has one."""
    for path, _, snapshot in _snapshots(pools):
        if snapshot.id is None:
            message = (
                "nodes pull their images until there is a snapshot; deploy, run "
                "`blueprints image-cache bake` with --write, and deploy again"
            )
            yield Finding(path, message, "warning")


def snapshot_is_no_slower(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a snapshot does not take the place of NVMe, onto which images could be pulled."""
    for path, pool, _ in _snapshots(pools):
        with_nvme = [each.name for each in known_instance_types(pool) if each.local_nvme_gb]
        if with_nvme:
            message = (
                f"the NVMe of {listing(with_nvme)} stays unused, for it would hide the images; pulling onto "
                "it with 'sociParallelPull' may be faster"
            )
            yield Finding(path, message, "warning")


def _snapshots(pools: Mapping[int, Pool]) -> Iterator[tuple[Path, Pool, EbsSnapshot]]:
    """Yield each pool that asks for a snapshot, with the place of that and what it says."""
    for index, pool in pools.items():
        snapshot = pool.image_acceleration.ebs_snapshot
        if snapshot:
            yield ("spec", "pools", index, "imageAcceleration", "ebsSnapshot"), pool, snapshot
