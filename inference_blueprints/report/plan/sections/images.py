"""How fast the workers of a deployment make images, and what an image costs."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.pricing.rates import share_of
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.performance import image_speed, images_per_second
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_HOUR, THOUSAND

_NO_DATA = "no data"


@dataclass(frozen=True, slots=True)
class ImageSummary:
    """Images of one deployment."""

    deployment: str
    """As ``model/deployment``."""
    size: str
    steps: int
    """`size`, `steps`: Width and height of the images in pixels, and their steps."""
    peak_images_per_second: float
    """Images per second at the model's peak."""
    workers: int
    """Largest number of workers."""
    images_per_second: float | None
    """Images per second of all workers, by a published speed; None if nobody published one for exactly such
    workers."""
    usd_per_thousand_images: float | None
    """US dollars for a thousand images with every worker busy; None if speed or price is unknown."""
    source: str
    """Where the speed was published, and its conditions; empty if it was not."""


def _summarise(basis: PlanBasis) -> Iterator[ImageSummary]:
    """Yield the images of each deployment that makes some, in the blueprint's order."""
    for resolved in basis.workers:
        images = resolved.traffic.means.images
        if images is None:
            continue
        speed = image_speed(resolved)
        rate = speed.images_per_second * resolved.workers.maximum if speed else None
        deployment = resolved.model.name, resolved.deployment.name
        _, usd = share_of({deployment}, basis[POOLS], basis[PROCESSES])
        yield ImageSummary(
            deployment=f"{resolved.model.name}/{resolved.label}",
            size=images.size,
            steps=images.steps,
            peak_images_per_second=images_per_second(resolved),
            workers=resolved.workers.maximum,
            images_per_second=rate,
            usd_per_thousand_images=None
            if rate is None or usd is None
            else usd / SECONDS_PER_HOUR / rate * THOUSAND,
            source=f"{speed.source} ({speed.date}). {speed.conditions}" if speed else "",
        )


def images(summary: PlanSummary) -> TextTable:
    """Return the table, which has a row per deployment that makes images."""
    return TextTable(
        "Images",
        ("deployment",),
        (
            "size, pixels",
            "steps",
            "images per second at peak",
            "images per second of all workers (published)",
            "USD per thousand images, full load",
        ),
        tuple(map(_row, summary[IMAGES])),
        tuple(_notes(summary[IMAGES])),
    )


def _row(each: ImageSummary) -> tuple[str, ...]:
    return (
        each.deployment,
        each.size,
        str(each.steps),
        number(each.peak_images_per_second),
        _NO_DATA if each.images_per_second is None else number(each.images_per_second),
        _NO_DATA if each.images_per_second is None else usd(each.usd_per_thousand_images),
    )


def _notes(summaries: tuple[ImageSummary, ...]) -> Iterator[str]:
    """Yield where the speeds are from, and what has none."""
    for each in summaries:
        if each.source:
            yield f"{each.deployment}: published, not measured here: {each.source}."
        else:
            yield (
                f"{each.deployment}: nobody published a speed for exactly this engine, device, size and "
                "number of steps; measure how many workers the peak needs."
            )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the images of each deployment at the peak."""
    if summary[IMAGES]:
        yield Label.CARRIES, few(map(_rate_in_short, summary[IMAGES]))


def _rate_in_short(each: ImageSummary) -> str:
    wanted = f"{number(each.peak_images_per_second)} images/s of {each.size} at the peak"
    if each.images_per_second is None:
        return f"{wanted}; no speed is published, so measure it"
    return f"{wanted}, and workers make {number(each.images_per_second)} (published)"


IMAGES = PlanSection("images", lambda basis: tuple(_summarise(basis)), _in_short, (images,))
