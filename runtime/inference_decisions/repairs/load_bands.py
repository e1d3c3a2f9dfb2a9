"""Cuts groups of peers into bands of comparable load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from inference_decisions.repairs.health_settings import DetectionSettings
from inference_decisions.repairs.worker_windows import Codes, Numbers


@dataclass(frozen=True, slots=True)
class LoadBands:
    """The band of each worker."""

    band: Codes
    """Number of its group and band."""
    bands: int
    """How many numbers there are. Some of them may have no worker."""
    typical: Numbers
    """Median load of its band."""
    order: Codes
    """Numbers of the workers, sorted by band, and by load within it."""


def load_bands(load: Numbers, group: Codes, groups: int, settings: DetectionSettings) -> LoadBands:
    """Return the load band of each worker.

    Bands are cut by rank, so that each has enough workers. A group whose middle half of workers differs
    little in load stays whole.

    load: Load of each worker.
    group: Number of its group.
    settings: Size and number of the bands.
    """
    order = numpy.lexsort((load, group))
    ordered = load[order]
    size = numpy.bincount(group, minlength=groups)
    starts = numpy.cumsum(size) - size

    def quartile(quarters: int) -> Numbers:
        place = starts + (size - 1) * quarters // 4
        found: Numbers = ordered[numpy.clip(place, 0, max(len(ordered) - 1, 0))]
        return found

    if not len(load):
        nobody = numpy.zeros(0, numpy.int64)
        return LoadBands(nobody, groups * settings.bands, load, nobody)
    wide = quartile(3) - quartile(1) > settings.load_tolerance * quartile(2)
    count = numpy.where(wide, numpy.clip(size // (2 * settings.min_group_size), 1, settings.bands), 1)
    ranks = numpy.arange(len(load)) - starts[group[order]]
    band = numpy.empty(len(load), numpy.int64)
    band[order] = (
        group[order] * settings.bands + ranks * count[group[order]] // numpy.maximum(size, 1)[group[order]]
    )
    bands = groups * settings.bands
    members = numpy.bincount(band, minlength=bands)
    # Bands follow each other in the order of the loads, so their medians are in the same sorted array.
    middle = numpy.cumsum(members) - members + (members - 1) // 2
    return LoadBands(band, bands, ordered[middle[band]], order)
