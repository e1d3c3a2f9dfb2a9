"""How far each worker is from its peers, in each window."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy

from inference_decisions.repairs.health_settings import DetectionSettings
from inference_decisions.repairs.worker_windows import Codes, Flags, Numbers, WorkerWindows


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


# Weighted medians of many groups at once.

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


#: A worker's weight in a median is at most this many times the mean: none of them is the median alone.
_LARGEST_WEIGHT = 2.0
#: Share of failures that is assumed of peers without one, so that one failure is no proof.
_MIN_FAILURES = 0.01
#: Kinds of failures, in the order in which they are reported.
FAILURES = ("failed", "failed_transfers", "empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerComparison:
    """The distance of each worker from its peers. Matrices of windows and workers, as in `WorkerWindows`."""

    slower: Numbers
    """Natural logarithm of the latency per token as a multiple of the peers' median. NaN if it cannot be
    judged."""
    load: Numbers
    """Natural logarithm of the load as a multiple of the peers' median. NaN where `slower` is. Zero where the
    load is so much lower that the peers' loads may be wrong: such a worker gets no allowance."""
    load_slope: Numbers
    """How much `slower` grows with `load` among the peers. Zero if that is unknown."""
    load_evidence: Numbers
    """How much is known about that slope: the sum of the squared differences of load that it comes from."""
    requests: Numbers
    """Requests of the worker. NaN if it reported too few, or is too young."""
    excess: Mapping[str, Numbers]
    """By kind of failure: share of requests above the peers' median share. NaN if it cannot be judged."""
    excess_spread: Mapping[str, Numbers]
    """By kind of failure: the spread of that share."""
    failures: Mapping[str, Numbers]
    """By kind of failure: the count."""


def join_comparisons(parts: Sequence[PeerComparison]) -> PeerComparison:
    """Return the comparisons of several windows, oldest first, as one.

    parts: Comparisons of the same workers.
    """
    return PeerComparison(
        slower=numpy.concatenate([part.slower for part in parts]),
        load=numpy.concatenate([part.load for part in parts]),
        load_slope=numpy.concatenate([part.load_slope for part in parts]),
        load_evidence=numpy.concatenate([part.load_evidence for part in parts]),
        requests=numpy.concatenate([part.requests for part in parts]),
        excess=_join([part.excess for part in parts]),
        excess_spread=_join([part.excess_spread for part in parts]),
        failures=_join([part.failures for part in parts]),
    )


def _join(parts: Sequence[Mapping[str, Numbers]]) -> Mapping[str, Numbers]:
    return {kind: numpy.concatenate([part[kind] for part in parts]) for kind in FAILURES}


def compare(windows: WorkerWindows, settings: DetectionSettings) -> PeerComparison:
    """Return how far each worker is from its peers in each window.

    windows: What the workers did.
    settings: How they are compared.
    """
    rows = len(windows.latency)
    _, peers = numpy.unique(windows.peers, return_inverse=True)
    groups = int(peers.max()) + 1 if len(peers) else 0
    place = (numpy.arange(rows)[:, None] * groups + peers[None, :]).astype(numpy.int64)
    ages = windows.age[None, :] - settings.window_seconds * numpy.arange(rows - 1, -1, -1)[:, None]
    with numpy.errstate(invalid="ignore"):
        reported = (windows.requests >= settings.least_requests) & (ages >= settings.warm_up_seconds)
        timed = reported & (windows.latency > 0) & (windows.load > 0)
    excess, excess_spread = dict[str, Numbers](), dict[str, Numbers]()
    counts = {
        "failed": windows.failed,
        "failed_transfers": windows.failed_transfers,
        "empty": windows.empty,
    }
    for name, count in counts.items():
        excess[name], excess_spread[name] = _excess(
            numpy.where(reported, count, numpy.nan), windows.requests, place, rows * groups, settings
        )
    slower, load, slope, evidence = _slowness(windows, timed, place, rows * groups, settings)
    return PeerComparison(
        slower=slower,
        load=load,
        load_slope=slope,
        load_evidence=evidence,
        requests=numpy.where(reported, windows.requests, numpy.nan),
        excess=excess,
        excess_spread=excess_spread,
        failures=counts,
    )


def _slowness(
    windows: WorkerWindows, timed: Flags, place: Codes, places: int, settings: DetectionSettings
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return distance from the peers' latency, from their load, the slope between both, and its evidence."""
    latency, load, requests = windows.latency[timed], windows.load[timed], windows.requests[timed]
    bands = load_bands(load, place[timed], places, settings)
    size = numpy.bincount(bands.band, minlength=bands.bands)
    weights = _weights(requests, bands.band, bands.bands, size)
    median = group_medians(latency, weights, bands.band, bands.bands)[bands.band]
    slower, more = numpy.log(latency / median), numpy.log(load / bands.typical)
    maximum = math.log1p(settings.max_excess_load)
    slope, evidence = load_slopes(slower, more, bands, place[timed], places, maximum=maximum)
    judged = (size[bands.band] >= settings.min_group_size) & (more <= maximum)
    return (
        spread_out(numpy.where(judged, slower, numpy.nan), timed),
        spread_out(numpy.where(judged, numpy.where(more >= -maximum, more, 0.0), numpy.nan), timed),
        slope[place],
        evidence[place],
    )


def _weights(requests: Numbers, group: Codes, groups: int, size: Codes) -> Numbers:
    mean = group_sums(requests, group, groups) / numpy.maximum(size, 1)
    return numpy.minimum(requests, _LARGEST_WEIGHT * mean[group])


def _excess(
    count: Numbers, requests: Numbers, place: Codes, places: int, settings: DetectionSettings
) -> tuple[Numbers, Numbers]:
    counted = numpy.isfinite(count) & numpy.isfinite(requests)
    group, answered = place[counted], requests[counted]
    share = count[counted] / answered
    if not (share[count[counted] >= settings.min_failures] >= settings.excess_share).any():
        # Nobody fails often enough to be suspicious, as in almost every minute: all are alike.
        return spread_out(numpy.zeros(len(share)), counted), spread_out(numpy.ones(len(share)), counted)
    size = numpy.bincount(group, minlength=places)
    weights = _weights(answered, group, places, size)
    usual = group_medians(share, weights, group, places)[group]
    away = share - usual
    scale = DEVIATIONS_PER_MAD * group_medians(numpy.abs(away), weights, group, places)[group]
    expected = numpy.clip(usual, _MIN_FAILURES, 1 - _MIN_FAILURES)
    chance = numpy.sqrt(expected * (1 - expected) / answered)
    judged = size[group] >= settings.min_group_size
    return (
        spread_out(numpy.where(judged, away, numpy.nan), counted),
        spread_out(numpy.maximum(scale, chance), counted),
    )
