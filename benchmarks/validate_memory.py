"""How much memory `blueprints validate quickstart-g6e` holds at its peak.

Compared with a process that only imports the libraries that it cannot do without (pydantic, PyYAML, typer).
"""

from __future__ import annotations

import sys

from benchmarks.harness.figure import Figure
from benchmarks.harness.measure import BLUEPRINTS, interleaved_medians, peak_memory_mib

_ROUNDS = 5
_GOAL_RATIO = 1.5
_LIBRARIES = "import pydantic, typer, yaml"


def measure() -> list[Figure]:
    """Take the measurement."""
    validate, libraries = interleaved_medians(
        [
            lambda: peak_memory_mib([BLUEPRINTS, "validate", "quickstart-g6e"]),
            lambda: peak_memory_mib([sys.executable, "-c", _LIBRARIES]),
        ],
        _ROUNDS,
    )
    return [Figure("validate_memory", validate, "MiB", baseline=libraries, goal=_GOAL_RATIO)]
