"""How long `blueprints validate quickstart-g6e` takes as a whole process.

The goal is 0.3 s. `validate_time_libraries` compares it with a process that only imports the libraries that
it cannot do without (pydantic, PyYAML, typer): what is above 1 is this project's own.
"""

from __future__ import annotations

import sys

from benchmarks.harness.figure import Figure
from benchmarks.harness.measure import BLUEPRINTS, interleaved_medians, wall_seconds

_ROUNDS = 15
_GOAL_SECONDS = 0.3
_LIBRARIES = "import pydantic, typer, yaml"


def measure() -> list[Figure]:
    """Take the measurement."""
    validate, libraries = interleaved_medians(
        [
            lambda: wall_seconds([BLUEPRINTS, "validate", "quickstart-g6e"]),
            lambda: wall_seconds([sys.executable, "-c", _LIBRARIES]),
        ],
        _ROUNDS,
    )
    return [
        Figure("validate_time", validate, "s", goal=_GOAL_SECONDS),
        Figure("validate_time_libraries", validate, "s", baseline=libraries),
    ]
