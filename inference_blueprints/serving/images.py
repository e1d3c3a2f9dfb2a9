"""The container images that nodes of a pool need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from inference_blueprints.serving.types import ServingPlan


def pool_images(plan: ServingPlan, pool: str) -> tuple[str, ...]:
    """Return the images of the processes that run on a pool's nodes, sorted, each once.

    Those of Kubernetes' own pods are not the plan's, and small.

    Parameters
    ----------
    plan
        The serving plan.
    pool
        Name of the pool.
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
    """Return what tells one set of images from another: 32 hexadecimal digits of a SHA-256.

    Parameters
    ----------
    images
        Image references, in any order.
    """
    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:32]
