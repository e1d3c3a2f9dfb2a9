"""Minimum time until the workers of a new node have their weights: bytes divided by bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints import catalog
from inference_blueprints.catalog import InstanceType, nat_gateways
from inference_blueprints.catalog.image_cache import INITIALIZATION_MIB_PER_SECOND
from inference_blueprints.catalog.volumes import image_volume_mib_per_second
from inference_blueprints.figures import ColdStart
from inference_blueprints.serving.estimates.node_copies import reads_node_copy, streams_weights
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Process
from inference_blueprints.sizing.node_packing import PackedNode

_BYTES_PER_MEGABIT = 125_000
_MIB = 2**20
_GB = 1e9


def cold_start(
    resolved: ResolvedWorkers, process: Process, nodes: Sequence[PackedNode], *, through_nat: bool
) -> ColdStart:
    """Return the minimum time of a deployment's workers on a new node.

    Weights arrive once if the workers of the node share a copy, and else once per worker, all over one
    network and one disk. Each worker fetches its draft itself. IP has one network card of a node's, for the
    others carry EFA alone. Streamed weights touch no disk. AWS publishes operations of NVMe and not bytes a
    second, so NVMe is not counted. An image on a snapshot is unpacked, and EBS fetches it at the rate that is
    asked for. What comes from the internet passes one NAT gateway, because a node uses that of its zone. The
    Hub, other nodes of the zone and what the engine does after loading only add to it.

    Parameters
    ----------
    nodes
        The pool's used nodes, of one type.
    through_nat
        Whether the platform's own NAT gateways lead to the internet.
    """
    kind = nodes[0].instance_type
    key = resolved.model.name, resolved.deployment.name, process.name
    together = max(
        sum((each.model, each.deployment, each.process.name) == key for each in node.workers)
        for node in nodes
    )
    network = kind.network_bandwidth_mbps // kind.network_cards * _BYTES_PER_MEGABIT
    disk = _disk_bytes_per_second(kind, resolved)
    streamed, in_s3 = streams_weights(resolved), resolved.model.weights.in_s3
    weights = (1 if reads_node_copy(resolved) else together) * resolved.shape.weight_bytes
    weights += together * resolved.draft_file_bytes
    limits = {"network": network}
    if through_nat:
        limits["NAT gateway"] = nat_gateways.MAXIMUM_MBPS * _BYTES_PER_MEGABIT
    if disk:
        limits["EBS"] = disk
    to_disk = min(limits.values())
    # The gateway endpoint of S3 bypasses the NAT gateways.
    on_the_way = {
        name: rate
        for name, rate in limits.items()
        if name == "network" or (name == "EBS" and not streamed) or not in_s3
    }
    limit = min(on_the_way, key=lambda name: on_the_way[name])
    weights_rate = on_the_way[limit]
    image_bytes, image_rate = _image_bytes(process.image), to_disk
    if resolved.pool.image_snapshot_id:
        image_bytes = _image_bytes(process.image, unpacked=True)
        image_rate = min(INITIALIZATION_MIB_PER_SECOND * _MIB, disk or network)
    return ColdStart(
        pool=resolved.pool.name,
        model=key[0],
        deployment=resolved.label,
        instance_type=kind.name,
        workers_on_the_node=together,
        launch_seconds=None,
        image_bytes=image_bytes,
        image_seconds=None if image_bytes is None else image_bytes / image_rate,
        image_seconds_per_gb=_GB / image_rate,
        image_from="snapshot" if resolved.pool.image_snapshot_id else "registry",
        weights_bytes=weights,
        weights_seconds=weights / weights_rate,
        weights_from=f"from {'S3' if in_s3 else 'the Hub'} by {limit}",
    )


def _image_bytes(reference: str, *, unpacked: bool = False) -> int | None:
    """Return the size of an image, compressed or unpacked; None if unknown."""
    image = catalog.images().get(reference.partition("@")[0])
    if image is None:
        return None
    return image.unpacked_bytes if unpacked else image.compressed_bytes


def _disk_bytes_per_second(kind: InstanceType, resolved: ResolvedWorkers) -> int | None:
    """Return the bandwidth of the EBS volume; None if images and weights are on NVMe."""
    volume = image_volume_mib_per_second(
        resolved.instance_types, from_snapshot=bool(resolved.pool.image_snapshot_id)
    )
    if volume is None:
        return None
    return min(volume * _MIB, kind.ebs_bandwidth_mbps * _BYTES_PER_MEGABIT)
