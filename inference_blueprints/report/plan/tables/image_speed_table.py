"""The table of images of the plan."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import PlanSummary
from inference_blueprints.report.figures.image_summary import ImageSummary
from inference_blueprints.report.plan.tables.cells import usd
from inference_blueprints.report.tables.text_table import TextTable

_NO_DATA = "no data"


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
        tuple(map(_row, summary.images)),
        tuple(_notes(summary.images)),
    )


def _row(each: ImageSummary) -> tuple[str, ...]:
    return (
        each.deployment,
        each.size,
        str(each.steps),
        f"{each.peak_images_per_second:.3g}",
        _NO_DATA if each.images_per_second is None else f"{each.images_per_second:.3g}",
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
