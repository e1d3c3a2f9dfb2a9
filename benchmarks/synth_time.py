"""How long synthesis of `quickstart-g6e` takes, as a new process.

The baseline is the smallest CDK app that creates an EKS cluster with a node group and one chart. The goal is
at most 1.3 times its time.

A third of the smallest app's time is Node loading the CDK's validation of templates. This project's app needs
it too. Meanwhile, Python reads the blueprint, plans and imports the stacks, which takes no time of its own.
Beside that, the app needs what the smallest app does not have: cdk-nag, 0.2 s to load its rules and to check
the resources; 400 calls to Node that create the resources of six stacks, 0.4 s; and the validation of six
templates instead of one, 0.1 s.
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
