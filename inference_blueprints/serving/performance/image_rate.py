"""How many images workers have to make, and how many one makes as others published it."""

from __future__ import annotations

from collections.abc import Iterable

from inference_blueprints.serving.estimates.traffic import deployment_requests_per_second
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import ImageSpeed, image_speeds


def images_per_second(resolved: ResolvedWorkers) -> float:
    """Return the images per second of a deployment at the model's peak; 0 for models that make none."""
    images = resolved.model.workload.images
    each = images.per_request if images else 0
    return deployment_requests_per_second(resolved.model, resolved.deployment) * each


def image_speed(resolved: ResolvedWorkers, speeds: Iterable[ImageSpeed] | None = None) -> ImageSpeed | None:
    """Return the published speed of exactly such workers; None if there is none.

    Model, engine with its release, devices, size and steps have to agree. Nothing is scaled from another size
    or device.

    speeds: The published speeds; those of the catalogue by default.
    """
    images, name = resolved.model.workload.images, resolved.model.weights.hugging_face
    if images is None:
        return None
    wanted = (
        resolved.model.weights.catalog or name,
        resolved.model.engine.chosen,
        resolved.engine.engine_version,
        resolved.accelerator.name,
        resolved.tensor_parallel_size,
        images.size,
        images.steps,
    )
    known = image_speeds() if speeds is None else speeds
    return next((each for each in known if _key(each) == wanted), None)


def _key(speed: ImageSpeed) -> tuple[str | int, ...]:
    return (
        speed.model,
        speed.engine,
        speed.engine_version,
        speed.accelerator,
        speed.tensor_parallel_size,
        speed.size,
        speed.steps,
    )
