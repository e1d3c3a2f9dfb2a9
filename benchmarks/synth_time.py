"""How long synthesis of `quickstart-g6e` takes, as a new process.

The baseline is the smallest CDK app that creates an EKS cluster with a node group and one chart. The goal is
at most 1.3 times its time.

Where the row is of an earlier version, it is too good: on 2026-11-28 the ratio was 1.82. By processor time,
on 2026-11-29 and beside other work, it was 1.5.
"""

from __future__ import annotations

from benchmarks.harness.figure import ROOT, Figure, interleaved_medians
from benchmarks.harness.timed_synthesis import blueprint_seconds, synthesis_seconds

_ROUNDS = 5
_GOAL_RATIO = 1.3
_MINIMAL = ROOT / "benchmarks" / "harness" / "minimal_eks_app.py"


def measure() -> list[Figure]:
    """Take the measurement."""
    quickstart, minimal = interleaved_medians(
        [lambda: blueprint_seconds("quickstart-g6e"), lambda: synthesis_seconds([_MINIMAL])], _ROUNDS
    )
    return [Figure("synth_time", quickstart, "s", baseline=minimal, goal=_GOAL_RATIO)]
