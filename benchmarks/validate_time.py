"""How long `blueprints validate quickstart-g6e` takes, as a new process.

The goal is 0.3 s. `validate_time_libraries` compares its processor time with that of a process that only
imports the required libraries (pydantic, PyYAML, typer).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.figure import Figure
from benchmarks.harness.timing import BLUEPRINTS, cost, interleaved_medians, wall_seconds

_ROUNDS = 15
_GOAL_SECONDS = 0.3
_VALIDATE: Sequence[str | Path] = [BLUEPRINTS, "validate", "quickstart-g6e"]
_LIBRARIES: Sequence[str | Path] = [sys.executable, "-c", "import pydantic, typer, yaml"]


def measure() -> list[Figure]:
    """Take the measurement."""
    wall, validate, libraries = interleaved_medians(
        [
            lambda: wall_seconds(_VALIDATE),
            lambda: cost(_VALIDATE).processor_seconds,
            lambda: cost(_LIBRARIES).processor_seconds,
        ],
        _ROUNDS,
    )
    return [
        Figure("validate_time", wall, "s", goal=_GOAL_SECONDS),
        Figure("validate_time_libraries", validate, "s", baseline=libraries),
    ]
