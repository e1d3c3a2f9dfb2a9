"""Whether the images of a request fit the longest request of a worker."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.serving.engines.sizing import engine_of
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers


def media_findings(resolved: ResolvedWorkers, sizing: Sizing) -> Iterator[Finding]:
    """Check that a request with as many images as are allowed leaves room for its answer.

    Parameters
    ----------
    resolved
        The workers.
    sizing
        Their figures.

    Yields
    ------
    Finding
        At most one error.
    """
    media, answer = resolved.model.media, resolved.model.workload.output_tokens
    if media is None:
        return
    images = media.images_per_request * media.tokens_per_image
    if images + answer <= sizing.max_model_len:
        return
    message = (
        f"got {media.images_per_request}, of {media.tokens_per_image} tokens each {images} in all; with an "
        f"answer of {answer} that is more than the {sizing.max_model_len} of the longest request of a worker "
        f"of '{resolved.label}'; lower one of them, or set {engine_of(resolved).WORDS.length}"
    )
    yield Finding((*resolved.model_path, "media", "imagesPerRequest"), message)
