"""How the time of `blueprints validate` grows from 5 pools and 4 models to 50 pools and 40 models.

The value is the processor time of a new process for the larger generated blueprint, and the baseline is that
for the smaller one. In both, most of the time is the start of Python and its libraries, so the goal is at
most 1.5 times the baseline.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from benchmarks.harness.figure import BLUEPRINTS, Figure, cost, interleaved_medians
from benchmarks.harness.generated import write_generated

#: What its processes run.
PROGRAMS = ("inference_blueprints/cli/main.py", "inference_blueprints/loading.py")
_ROUNDS = 9
_GOAL_RATIO = 1.5
_SIZES = ((5, 4), (50, 40))


def measure() -> list[Figure]:
    """Take the measurement."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [write_generated(Path(directory), pools, models) for pools, models in _SIZES]
        small, large = interleaved_medians([partial(_seconds, path) for path in paths], _ROUNDS)
    return [Figure("validate_growth", large, "s", baseline=small, goal=_GOAL_RATIO)]


def _seconds(path: Path) -> float:
    """Return the processor seconds of one validation."""
    return cost([BLUEPRINTS, "validate", path]).processor_seconds
