"""How long synthesis of `quickstart-g6e` takes, as a new process.

The baseline is the smallest CDK app that creates an EKS cluster with a node group and one chart. The goal is
at most 1.3 times its time.

Two fifths of the smallest app's time is Node compiling the CDK's validation of templates. This project's
app needs it too, and has Node compile it while Python reads the blueprint and plans. Beside that, it needs
cdk-nag, a tenth of its time, which the smallest app does not have.
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
