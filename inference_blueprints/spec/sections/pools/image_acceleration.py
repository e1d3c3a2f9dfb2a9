"""Rules on how nodes get their images."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import EbsSnapshot, Pool, Spec
from inference_blueprints.spec.wording import Path, listing
from inference_contracts.errors import Finding


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
