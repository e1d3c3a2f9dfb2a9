"""The container images that nodes of a pool need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from inference_blueprints.serving.types import ServingPlan


def pool_images(plan: ServingPlan, pool: str) -> tuple[str, ...]:
    """Return the images of the processes on a pool's nodes, sorted, without duplicates.

    The plan does not contain the images of Kubernetes' own pods, which are small.
    """
    images = {
        image
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
        if process.pool == pool
        for image in (process.image, *(sidecar.image for sidecar in process.sidecars))
    }
    return tuple(sorted(images))


def images_digest(images: Iterable[str]) -> str:
    """Return an identifier of a set of images: 32 hexadecimal digits of a SHA-256.

    images: Image references, in any order.
    """
    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:32]
