"""What the comparison of workers found."""

from __future__ import annotations

from dataclasses import dataclass

from inference_decisions.repairs.worker_windows import Flags, Names, Numbers


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
