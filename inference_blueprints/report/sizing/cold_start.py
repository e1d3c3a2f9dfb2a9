"""Time until the workers of a new node serve, part by part, for the plan."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.report.figures import ColdStart
from inference_blueprints.report.sizing.node_packing import PackedNode
from inference_blueprints.serving.estimates.start_time import start_time
from inference_blueprints.serving.estimates.worker_start import worker_start
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Process

_GB = 1e9


def cold_start(resolved: ResolvedWorkers, process: Process, nodes: Sequence[PackedNode]) -> ColdStart:
    """Return the start of a deployment's workers on a new node.

    Parameters
    ----------
    nodes
        The pool's used nodes, of one type.
    """
    kind = nodes[0].instance_type
    key = resolved.model.name, resolved.deployment.name, process.name
    together = max(
        sum((each.model, each.deployment, each.process.name) == key for each in node.workers)
        for node in nodes
    )
    start = start_time(resolved, process.image, kind, together)
    parts = worker_start(resolved, process.image, kind, together)
    launch, engine = parts.part("launch"), parts.part("engine")
    return ColdStart(
        pool=resolved.pool.name,
        model=key[0],
        deployment=resolved.label,
        instance_type=kind.name,
        workers_on_the_node=together,
        launch_seconds=launch.seconds,
        launch_basis=launch.basis,
        engine_seconds=engine.seconds,
        engine_basis=engine.basis,
        image_bytes=start.image_bytes,
        image_seconds=start.image_seconds,
        image_seconds_per_gb=_GB / start.image_bytes_per_second,
        image_from="snapshot" if resolved.pool.image_snapshot_id else "registry",
        weights_bytes=start.weights_bytes,
        weights_seconds=start.weights_seconds,
        weights_from=f"from {'S3' if resolved.model.weights.in_s3 else 'the Hub'} by {start.weights_limit}",
    )
