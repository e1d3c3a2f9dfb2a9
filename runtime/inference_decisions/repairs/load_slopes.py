"""How much the latency of peers grows with their load."""

from __future__ import annotations

import numpy

from inference_decisions.repairs.load_bands import LoadBands
from inference_decisions.repairs.segment_medians import group_medians, group_sums
from inference_decisions.repairs.worker_windows import Codes, Numbers

#: Workers whose loads differ by less say nothing about the slope.
_MIN_DIFFERENCE = 0.01
#: A slope is never taken as steeper. Latency that grows with the square of the load has 2.
_STEEPEST = 2.0


def load_slopes(
    slower: Numbers, more: Numbers, bands: LoadBands, group: Codes, groups: int, *, maximum: float
) -> tuple[Numbers, Numbers]:
    """Return the slope of each group, and the evidence for it.

    The slope is the weighted median of the slopes between pairs of workers that are half a load band apart
    (Theil, "A rank-invariant method of linear regression analysis", 1950, with the weights of Jaeckel, 1972),
    so that a slow worker does not move it. It is zero where nothing is known, and never negative.

    slower, more: Logarithms of each worker's latency and load, against those of its load band.
    group: Number of each worker's group.
    maximum: Workers whose load is further from that of their band, as a logarithm, do not count: such as
        those that were counted twice.
    """
    slope, evidence = numpy.zeros(groups), numpy.zeros(groups)
    if not len(slower):
        return slope, evidence
    band = bands.band[bands.order]
    half = numpy.bincount(bands.band, minlength=bands.bands)[band] // 2
    first = numpy.arange(len(band))
    second = first + half
    paired = (half > 0) & (second < len(band))
    first, second = first[paired], second[paired]
    same = band[first] == band[second]
    one, other = bands.order[first[same]], bands.order[second[same]]
    apart = more[other] - more[one]
    telling = (apart >= _MIN_DIFFERENCE) & (more[other] <= maximum) & (more[one] >= -maximum)
    one, other, apart = one[telling], other[telling], apart[telling]
    found = group_medians((slower[other] - slower[one]) / apart, apart, group[one], groups)
    evidence = group_sums(apart**2, group[one], groups)
    known = numpy.isfinite(found)
    slope[known] = numpy.clip(found[known], 0.0, _STEEPEST)
    return slope, evidence
