"""How slow workers were in the newest windows, and how much their peers differ from each other."""

from __future__ import annotations

import numpy

from inference_decisions.repairs.health_settings import DetectionSettings
from inference_decisions.repairs.peer_comparison import PeerComparison
from inference_decisions.repairs.segment_medians import DEVIATIONS_PER_MAD, group_medians
from inference_decisions.repairs.worker_windows import Labels, Numbers


def at_equal_load(comparison: PeerComparison, settings: DetectionSettings) -> Numbers:
    """Return the slowdowns without the part that the workers' loads explain.

    The slopes of all windows count, by their evidence. With little evidence the slope is taken as flatter.

    comparison: How far workers were from their peers.
    settings: How much evidence a slope needs.
    """
    evidence = comparison.load_evidence.sum(axis=0)
    total = (comparison.load_slope * comparison.load_evidence).sum(axis=0)
    slope = total / (evidence + settings.slope_evidence)
    with numpy.errstate(invalid="ignore"):
        adjusted: Numbers = comparison.slower - slope * comparison.load
    return adjusted


def level_and_spread(
    slower: Numbers, requests: Numbers, peers: Labels, length: int, settings: DetectionSettings
) -> tuple[Numbers, Numbers]:
    """Return each worker's mean slowdown in the newest windows, and the spread of such means.

    The spread is what the settings assume, times how much wider or narrower the peers are than that. Their
    means over the same number of windows are looked at, in all blocks of windows that there are, so that
    differences that last, and those that last for minutes, are in it. The median of a few workers is a poor
    estimate, so the assumption counts as some workers (Smyth, "Linear models and empirical Bayes methods",
    2004, shrinks variances of small groups in this way).

    slower, requests: Slowdowns and requests of windows and workers, oldest first.
    peers: Group of each worker.
    length: Number of windows of a mean.
    settings: What is assumed.
    """
    weights = numpy.where(numpy.isfinite(slower), requests, 0.0)
    shares = numpy.where(weights > 0, slower, 0.0) * weights
    ends = [len(slower), *range(len(slower) - length, length - 1, -length)]
    counts = numpy.array([weights[max(end - length, 0) : end].sum(axis=0) for end in ends])
    totals = numpy.array([shares[max(end - length, 0) : end].sum(axis=0) for end in ends])
    known = counts > 0
    levels = numpy.divide(totals, counts, out=numpy.full(counts.shape, numpy.nan), where=known)
    assumed = numpy.sqrt(
        settings.min_spread**2 + settings.request_spread**2 / numpy.where(known, counts, 1.0)
    )
    names, group = numpy.unique(peers, return_inverse=True)
    groups = numpy.broadcast_to(group, counts.shape)[known]
    size = numpy.bincount(group[known[0]], minlength=len(names))
    away = numpy.abs(levels[known]) / assumed[known]
    wider = DEVIATIONS_PER_MAD * group_medians(away, numpy.ones(len(away)), groups, len(names))
    # In a load spike the peers differ more than before: their newest means alone count, if they are wider.
    newest = away[: int(known[0].sum())]
    now = group_medians(newest, numpy.ones(len(newest)), group[known[0]], len(names))
    wider = numpy.fmax(wider, DEVIATIONS_PER_MAD * now)
    trusted = size / (size + settings.assumed_workers)
    scale = numpy.sqrt(trusted * numpy.nan_to_num(wider) ** 2 + 1 - trusted)
    scale *= 1 + settings.small_group / numpy.maximum(size, 1)
    spread = numpy.maximum(scale[group] * assumed[0], settings.min_spread)
    return levels[0], numpy.where(known[0], spread, numpy.nan)
