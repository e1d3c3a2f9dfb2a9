"""How much memory `blueprints validate quickstart-g6e` uses at its peak.

The baseline is a process that only imports the required libraries (pydantic, PyYAML, typer).
"""

from __future__ import annotations

import sys

from benchmarks.harness.figure import BLUEPRINTS, Figure, cost, interleaved_medians

#: What its processes run.
PROGRAMS = ("inference_blueprints/cli/main.py", "inference_blueprints/loading.py")
_ROUNDS = 5
_GOAL_RATIO = 1.5
_LIBRARIES = "import pydantic, typer, yaml"


def measure() -> list[Figure]:
    """Take the measurement."""
    validate, libraries = interleaved_medians(
        [
            lambda: cost([BLUEPRINTS, "validate", "quickstart-g6e"]).memory_mib,
            lambda: cost([sys.executable, "-c", _LIBRARIES]).memory_mib,
        ],
        _ROUNDS,
    )
    return [Figure("validate_memory", validate, "MiB", baseline=libraries, goal=_GOAL_RATIO)]
