"""The snapshots that a blueprint needs, and whether those in the account can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account, describe_error
from inference_blueprints.serving.nodes.node_share import images_digest, pool_images
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint, Pool
from inference_blueprints.spec.wording import allowed, quote, suggestion
from inference_catalog import image_cache
from inference_catalog.releases import NodeImage
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class WantedSnapshot:
    """A pool with ``ebsSnapshot``, and the required content of its snapshot."""

    pool: str
    named: str | None
    """Id in the blueprint; None if there is none yet."""
    architecture: str
    """Architecture of the pool's instance types."""
    images: tuple[str, ...]
    size_gib: int
    """Size of the nodes' data volume."""
    bottlerocket: str
    """Variant and release of the nodes, such as ``aws-k8s-1.35/v1.66.0``."""

    @property
    def images_digest(self) -> str:
        """Digest of the list of images."""
        return images_digest(self.images)


def wanted_snapshots(
    blueprint: Blueprint, plan: ServingPlan, only: Collection[str] = ()
) -> list[WantedSnapshot]:
    """Return the pools with ``ebsSnapshot``, in the blueprint's order.

    only: Names of the pools to return; empty for all.
    Raises UserError if one of ``only`` is not a pool, or has no ``ebsSnapshot``.
    """
    pools = {pool.name: pool for pool in blueprint.spec.pools}
    for name in only:
        if name not in pools:
            raise UserError(f"got {quote(name)}, {allowed('pool', pools)}{suggestion(name, pools)}")
        if not pools[name].image_acceleration.ebs_snapshot:
            raise UserError(
                f"pool {quote(name)} has no `ebsSnapshot`; add `imageAcceleration: {{ebsSnapshot: {{}}}}` to "
                "it and deploy"
            )
    return [
        _wanted(pool, plan, _node_image(blueprint, pool.name))
        for pool in pools.values()
        if pool.image_acceleration.ebs_snapshot and (not only or pool.name in only)
    ]


def _node_image(blueprint: Blueprint, pool: str) -> NodeImage:
    """Return the node image of a pool; only EKS clusters have one."""
    eks, releases = blueprint.spec.cluster.eks, blueprint.releases
    if eks is None:
        raise UserError("snapshots of images need EKS nodes, and the blueprint has no cluster.eks")
    return releases.node_image(pool, eks.version)


def _wanted(pool: Pool, plan: ServingPlan, image: NodeImage) -> WantedSnapshot:
    return WantedSnapshot(
        pool=pool.name,
        named=pool.image_snapshot_id,
        architecture=pool.types[0].architecture,
        images=pool_images(plan, pool.name),
        size_gib=pool.disk.size_gib,
        bottlerocket=image_cache.variant(image),
    )


#: ``current``: has the right images; ``stale``: works, but saves less time or none; ``unusable``: no node of
#: the pool starts; ``absent``: the blueprint names no snapshot, so nodes pull their images.
State = Literal["current", "stale", "unusable", "absent"]
_COMPLETED = "completed"
#: EC2's error codes for an id that does not exist in this account and region.
_MISSING = frozenset({"InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed"})


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """A pool's snapshot."""

    pool: str
    snapshot_id: str | None
    """Id in the blueprint; None if there is none."""
    state: State
    remarks: tuple[str, ...] = ()
    """Reasons for the state, and what to do."""
    taken: str | None = None
    """Creation time in ISO 8601; None if there is no snapshot."""
    age_days: int | None = None
    """Age in whole days; None if there is no snapshot."""
    size_gib: int | None = None
    """Size of the volume; None if there is no snapshot."""
    others: tuple[str, ...] = ()
    """Other complete snapshots of this pool, the newest first."""

    def __str__(self) -> str:
        """Return pool, state, snapshot, age and remarks on one line."""
        snapshot = self.snapshot_id or "no snapshot"
        if self.age_days is not None:
            snapshot += f", {self.age_days} days old, {self.size_gib} GiB"
        unused = f"other snapshots of this pool: {', '.join(self.others)}" if self.others else ""
        return "; ".join(filter(None, (f"{self.state:8}  {self.pool}: {snapshot}", *self.remarks, unused)))


def snapshot_status(
    account: Account, platform: str, wanted: WantedSnapshot, *, now: datetime
) -> SnapshotStatus:
    """Compare the snapshot of a pool with the plan.

    wanted: The pool, and the required content of its snapshot.
    now: Current time, with its time zone.
    Raises botocore.exceptions.ClientError if AWS does not answer.
    """
    ec2 = account.client("ec2")
    others = tuple(_others(ec2, platform, wanted))
    if wanted.named is None:
        remark = "the blueprint names no snapshot, so nodes pull their images"
        if others:
            remark += f"; write the newest one of this pool, {others[0]}, to ebsSnapshot.id"
        return SnapshotStatus(wanted.pool, None, "absent", (remark,), others=others)
    snapshot = _described(ec2, wanted.named)
    if snapshot is None:
        remark = f"{wanted.named} does not exist in {account.region}, so no node starts"
        return SnapshotStatus(wanted.pool, wanted.named, "unusable", (remark,), others=others)
    unusable = tuple(_obstacles(snapshot, wanted))
    stale = tuple(_differences(snapshot, wanted))
    state: State = "unusable" if unusable else "stale" if stale else "current"
    return SnapshotStatus(
        pool=wanted.pool,
        snapshot_id=wanted.named,
        state=state,
        remarks=(*unusable, *stale, *_foreign_key(account, snapshot)),
        taken=snapshot["StartTime"].isoformat(),
        age_days=(now - snapshot["StartTime"]).days,
        size_gib=snapshot["VolumeSize"],
        others=others,
    )


def _described(ec2: Any, snapshot_id: str) -> Mapping[str, Any] | None:
    """Return EC2's description of a snapshot; None if it does not exist."""
    try:
        [snapshot] = ec2.describe_snapshots(SnapshotIds=[snapshot_id])["Snapshots"]
    except ClientError as error:
        if error.response["Error"]["Code"] in _MISSING:
            return None
        raise
    return dict(snapshot)


def _others(ec2: Any, platform: str, wanted: WantedSnapshot) -> Iterator[str]:
    """Yield this pool's other snapshots, the newest first."""
    filters = [
        {"Name": f"tag:{PLATFORM_TAG}", "Values": [platform]},
        {"Name": f"tag:{image_cache.POOL_TAG}", "Values": [wanted.pool]},
        {"Name": "status", "Values": [_COMPLETED]},
    ]
    pages = ec2.get_paginator("describe_snapshots").paginate(OwnerIds=["self"], Filters=filters)
    found = [snapshot for page in pages for snapshot in page["Snapshots"]]
    for snapshot in sorted(found, key=lambda each: each["StartTime"], reverse=True):
        if snapshot["SnapshotId"] != wanted.named:
            yield snapshot["SnapshotId"]


def _obstacles(snapshot: Mapping[str, Any], wanted: WantedSnapshot) -> Iterator[str]:
    """Yield reasons why no volume can be created from the snapshot."""
    if snapshot["State"] != _COMPLETED:
        yield f"it is {snapshot['State']}, not {_COMPLETED}, so no node starts"
    if snapshot["VolumeSize"] > wanted.size_gib:
        yield (
            f"it has {snapshot['VolumeSize']} GiB, the pool's disk.sizeGib is {wanted.size_gib}, so no "
            f"node starts; set it to {snapshot['VolumeSize']}, or bake again"
        )


def _differences(snapshot: Mapping[str, Any], wanted: WantedSnapshot) -> Iterator[str]:
    """Yield the differences between the snapshot and the plan."""
    tags = {tag["Key"]: tag["Value"] for tag in snapshot.get("Tags", [])}
    baked = tags.get(image_cache.IMAGES_TAG)
    if baked is None:
        yield "it was not baked by this library, so its content is unknown"
        return
    if baked != wanted.images_digest:
        yield f"it has other images, so nodes pull {', '.join(wanted.images)}; bake again"
    bottlerocket = tags.get(image_cache.BOTTLEROCKET_TAG)
    if bottlerocket != wanted.bottlerocket:
        yield f"it was baked with {bottlerocket}, the nodes have {wanted.bottlerocket}; bake again"
    if tags.get(image_cache.SNAPSHOTTER_TAG) != image_cache.SNAPSHOTTER:
        yield f"its images were not unpacked by {image_cache.SNAPSHOTTER}, so nodes delete them; bake again"


def _foreign_key(account: Account, snapshot: Mapping[str, Any]) -> Iterator[str]:
    """Yield the permissions on a customer's key that nodes need to start."""
    key = snapshot.get("KmsKeyId")
    if not key:
        return
    try:
        manager = account.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyManager"]
    except ClientError as error:
        yield f"its key {key} could not be checked: {describe_error(error)}"
        return
    if manager == "CUSTOMER":
        yield (
            f"it is encrypted with {key}: the key policy must let Karpenter's role use the key through EC2 "
            "(kms:CreateGrant, Decrypt, DescribeKey, GenerateDataKeyWithoutPlaintext, ReEncrypt*)"
        )
