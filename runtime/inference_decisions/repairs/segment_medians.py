"""Weighted medians of many groups at once."""

from __future__ import annotations

import numpy

from inference_decisions.repairs.worker_windows import Codes, Flags, Numbers

#: Standard deviation of a normal distribution, in units of its median absolute deviation.
#: https://en.wikipedia.org/wiki/Median_absolute_deviation
DEVIATIONS_PER_MAD = 1.4826


def group_sums(values: Numbers, group: Codes, groups: int) -> Numbers:
    """Return the sum of each group.

    values: Values to add.
    group: Number of the group of each value.
    """
    return numpy.asarray(numpy.bincount(group, weights=values, minlength=groups), numpy.float64)


def group_medians(values: Numbers, weights: Numbers, group: Codes, groups: int) -> Numbers:
    """Return the weighted median of each group: the value at which half of the weight is reached.

    If exactly half of the weight is on either side, it is the mean of the two values in the middle. Groups
    without weight have NaN.

    values: Finite values.
    weights: Weights above zero.
    """
    order = numpy.lexsort((values, group))
    ordered, reached = values[order], numpy.cumsum(weights[order])
    ends = numpy.cumsum(numpy.bincount(group, minlength=groups))
    starts = numpy.concatenate(([0], ends[:-1]))
    filled = ends > starts
    before = numpy.where(starts > 0, reached[starts - 1], 0.0) if len(reached) else numpy.zeros(groups)
    medians = numpy.full(groups, numpy.nan)
    first, last = starts[filled], ends[filled] - 1
    half = (before[filled] + reached[last]) / 2
    # Sums of many weights round: what differs by less than this is equal.
    rounding = 1e-9 * numpy.maximum(half, 1.0)
    low = numpy.clip(numpy.searchsorted(reached, half - rounding), first, last)
    high = numpy.clip(numpy.searchsorted(reached, half + rounding), first, last)
    medians[filled] = (ordered[low] + ordered[high]) / 2
    return medians


def spread_out(flat: Numbers, usable: Flags) -> Numbers:
    """Return values of the usable elements at their places in a matrix of NaN.

    flat: One value per usable element.
    usable: The matrix of elements that have a value.
    """
    matrix = numpy.full(usable.shape, numpy.nan)
    matrix[usable] = flat
    return matrix
