"""Which workers are worse than their peers, alone and for long enough.

The Lambda function and the simulated fleet call the same functions. Medians and median absolute deviations
are used because up to half of the peers may be odd without moving them (Rousseeuw and Croux, "Alternatives to
the Median Absolute Deviation", 1993).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

from inference_decisions.repairs.health_settings import DetectionSettings, SlownessRule
from inference_decisions.repairs.peer_comparison import (
    DEVIATIONS_PER_MAD,
    FAILURES,
    PeerComparison,
    compare,
    group_medians,
)
from inference_decisions.repairs.worker_windows import Codes, Flags, Labels, Names, Numbers, WorkerWindows

# How slow workers were in the newest windows, and how much their peers differ from each other.


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


# What the comparison of workers found.


@dataclass(frozen=True, slots=True)
class Shift:
    """Many workers moved together: a finding of its own, and no verdict on single workers."""

    unit: str
    """What moved: ``rack``, ``peers`` (workers that are compared with each other) or ``pool``."""
    name: str
    workers: int
    """Workers that moved."""
    slower: float
    """Their median slowdown against their peers, as a share. Zero if they moved in failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What `detect` found. Arrays with one element per worker, in the order of the windows."""

    suspicious: Flags
    """Whether the worker alone is worse than its peers."""
    kind: Names
    """``slow``, ``failed``, ``failed_transfers``, ``empty``, or the empty string."""
    slower: Numbers
    """Slowdown against the peers in the newest windows, by the first rule, as a share. NaN if it is
    unknown."""
    score: Numbers
    """Distance from the peers in units of their spread, by the first of the rules."""
    decidable: Flags
    """Whether the newest window could be judged: enough peers, requests, and comparable load."""
    suppressed_by: Names
    """Name of the unit that moved together, or the empty string."""
    shifts: tuple[Shift, ...]
    """What moved together."""


@dataclass(frozen=True, slots=True)
class _Sighting:
    """Workers that one rule finds, before it is asked whether others moved with them."""

    kind: str
    found: Flags
    level: Numbers
    score: Numbers


def detect(windows: WorkerWindows, settings: DetectionSettings) -> Verdicts:
    """Return which workers are worse than their peers.

    windows: What the workers did in the newest windows, oldest first.
    settings: How they are compared.
    """
    return judge(windows, compare(windows, settings), settings)


def judge(windows: WorkerWindows, comparison: PeerComparison, settings: DetectionSettings) -> Verdicts:
    """Return which workers are worse than their peers, from a comparison that was made before.

    windows: Where the workers are. Their figures are not read.
    comparison: How far they were from their peers, in the newest windows, oldest first.
    """
    slower = at_equal_load(comparison, settings)
    sightings = [_slow(comparison, slower, windows.peers, rule, settings) for rule in settings.rules]
    first = sightings[0]
    sightings += [_failing(comparison, kind, settings) for kind in FAILURES]
    count = len(windows.worker)
    kind = numpy.full(count, "", dtype="U16")
    suspicious, suppressed_by = numpy.zeros(count, numpy.bool_), numpy.full(count, "", dtype="U128")
    shifts = dict[tuple[str, str], Shift]()
    for sighting in sightings:
        for worker in numpy.flatnonzero(sighting.found & ~suspicious & (suppressed_by == "")):
            kind[worker] = sighting.kind
            shift = _shift(int(worker), sighting, windows, comparison.requests, settings)
            if shift is None:
                suspicious[worker] = True
            else:
                suppressed_by[worker] = f"{shift.unit} {shift.name}"
                shifts.setdefault((shift.unit, shift.name), shift)
    return Verdicts(
        suspicious=suspicious,
        kind=kind,
        slower=numpy.expm1(first.level),
        score=first.score,
        decidable=numpy.isfinite(comparison.slower[-1]),
        suppressed_by=suppressed_by,
        shifts=tuple(shifts.values()),
    )


def _slow(
    comparison: PeerComparison,
    slower: Numbers,
    peers: Labels,
    rule: SlownessRule,
    settings: DetectionSettings,
) -> _Sighting:
    """Return who is slow: often enough, now, and further off than its peers are from each other."""
    with numpy.errstate(invalid="ignore"):
        slow = slower[-rule.windows :] >= math.log1p(rule.slower)
    level, spread = level_and_spread(slower, comparison.requests, peers, rule.needed, settings)
    score = level / spread
    with numpy.errstate(invalid="ignore"):
        found = (slow.sum(axis=0) >= rule.needed) & slow[-1] & (score >= settings.score)
    return _Sighting("slow", found, level, score)


def _failing(comparison: PeerComparison, kind: str, settings: DetectionSettings) -> _Sighting:
    rule = settings.rules[0]
    newest = comparison.excess[kind][-rule.windows :]
    spread, count = comparison.excess_spread[kind][-rule.windows :], comparison.failures[kind]
    with numpy.errstate(invalid="ignore"):
        failing = (newest >= settings.excess_share) & (newest >= settings.score * spread)
        failing &= count[-rule.windows :] >= settings.min_failures
    level = _mean(newest)
    return _Sighting(kind, (failing.sum(axis=0) >= rule.needed) & failing[-1], level, level / _mean(spread))


def _mean(matrix: Numbers) -> Numbers:
    """Return the mean of each column without NaN. NaN if nothing is left."""
    known = numpy.isfinite(matrix)
    count = known.sum(axis=0)
    total = numpy.where(known, matrix, 0.0).sum(axis=0)
    return numpy.where(count > 0, total / numpy.maximum(count, 1), numpy.nan)


def _shift(
    worker: int, sighting: _Sighting, windows: WorkerWindows, requests: Numbers, settings: DetectionSettings
) -> Shift | None:
    """Return what moved together with a worker. None if it moved alone.

    Workers on the same node do not count: the node is what is replaced.
    """
    level, node = sighting.level, windows.node
    units: dict[str, Labels] = {"rack": windows.rack, "peers": windows.peers, "pool": windows.pool}
    for unit, names in units.items():
        if names[worker] == "":
            continue
        others: Codes = numpy.flatnonzero((names == names[worker]) & (node != node[worker]))
        judged = others[numpy.isfinite(level[others])]
        if unit == "rack" and _fell_silent(others, judged, requests):
            return Shift("rack", str(names[worker]), 0, 0.0)
        with numpy.errstate(invalid="ignore"):
            moved = judged[level[judged] >= settings.neighbours_moved_distance * level[worker]]
        if len(moved) and len(moved) >= settings.neighbours_moved_share * len(judged):
            slower = math.expm1(float(numpy.median(level[moved]))) if sighting.kind == "slow" else 0.0
            return Shift(unit, str(names[worker]), len(moved) + 1, slower)
    return None


def _fell_silent(others: Codes, judged: Codes, requests: Numbers) -> bool:
    """Return whether most workers of a rack reported lately and do not now: nobody can be compared."""
    reported = numpy.isfinite(requests[:, others])
    lately = others[reported.any(axis=0)]
    now = others[reported[-1]]
    return len(lately) > 1 and 2 * len(now) < len(lately) and 2 * len(judged) < len(lately)
