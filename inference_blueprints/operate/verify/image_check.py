"""Asks a model that makes images for one, and checks it."""

from __future__ import annotations

import aiohttp

from inference_blueprints.measure.completions.image_client import count_images, image_body
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.answered_request import ModelUnansweredError, answered
from inference_blueprints.spec.types import ImageRequests
from inference_contracts.batch_body_fields import IMAGES_PATH

CHECK = "images"
_PROMPT = "a red bridge in the fog"


async def generated_images(
    session: aiohttp.ClientSession,
    base_url: str,
    model: str,
    label: str,
    timeout_seconds: float,
    *,
    images: ImageRequests,
) -> CheckResult:
    """Check that an endpoint answers with as many images as the workload states.

    base_url: Address of the endpoint, without ``/v1``.
    label: Name in the message, such as ``z-image-turbo/main``.
    timeout_seconds: Maximum time of the answer.
    images: The workload of the model.
    """
    body = image_body(model, _PROMPT, images)
    try:
        found = await answered(
            session, base_url, IMAGES_PATH, body, timeout_seconds=timeout_seconds, read=count_images
        )
    except ModelUnansweredError as error:
        return CheckResult(CHECK, "error", f"{label}: no images: {error}")
    if found != images.per_request:
        message = f"{label}: {found} images instead of {images.per_request}"
        return CheckResult(CHECK, "error", message)
    return CheckResult(CHECK, "ok", f"{label}: {found} PNG of {images.size} in {images.steps} steps")
