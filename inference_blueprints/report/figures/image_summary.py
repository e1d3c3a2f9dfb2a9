"""How fast the workers of a deployment make images, and what an image costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImageSummary:
    """Images of one deployment.

    Parameters
    ----------
    deployment
        As ``model/deployment``.
    size, steps
        Width and height of the images in pixels, and their steps.
    peak_images_per_second
        Images per second at the model's peak.
    workers
        Largest number of workers.
    images_per_second
        Images per second of all workers, by a published speed; None if nobody published one for exactly such
        workers.
    usd_per_thousand_images
        US dollars for a thousand images with every worker busy; None if speed or price is unknown.
    source
        Where the speed was published, and its conditions; empty if it was not.
    """

    deployment: str
    size: str
    steps: int
    peak_images_per_second: float
    workers: int
    images_per_second: float | None
    usd_per_thousand_images: float | None
    source: str
