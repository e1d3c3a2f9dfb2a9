"""The required content of a pool's snapshot."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference_blueprints.serving.nodes.pool_images import images_digest, pool_images
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint, Pool
from inference_blueprints.spec.wording import allowed, quote, suggestion
from inference_catalog import image_cache
from inference_catalog.releases import NodeImage
from inference_contracts.errors import UserError


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
