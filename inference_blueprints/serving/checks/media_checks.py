"""Checks whether the images of a request fit the longest request of a worker."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.errors import Finding


def media_findings(resolved: ResolvedWorkers, sizing: Sizing) -> Iterator[Finding]:
    """Check that a request with the most allowed images leaves room for its answer.

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
        f"got {media.images_per_request} images of {media.tokens_per_image} tokens, {images} in total; with "
        f"an answer of {answer}, this exceeds the {sizing.max_model_len} tokens that a worker of "
        f"'{resolved.label}' accepts; lower one of them, or raise {engine_of(resolved).argument_names.length}"
    )
    yield Finding((*resolved.model_path, "media", "imagesPerRequest"), message)
