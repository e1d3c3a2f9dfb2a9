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
from inference_decisions.repairs.peer_comparison import FAILURES, PeerComparison, compare
from inference_decisions.repairs.slowness_level import at_equal_load, level_and_spread
from inference_decisions.repairs.verdicts import Shift, Verdicts
from inference_decisions.repairs.worker_windows import Codes, Flags, Labels, Numbers, WorkerWindows


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
