"""How synthesis grows from 5 pools and 4 models to 50 pools and 40 models.

Three generated blueprints, of 5, 25 and 50 pools with four models to five pools, give two slopes: the
seconds that each further pool takes in the lower half and in the upper half. The value is the upper slope,
the baseline the lower one: linear growth has a ratio of 1. The goal is 1.3. `synth_growth_total` is the
whole time of the largest.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from benchmarks.harness.figure import Figure
from benchmarks.harness.measure import interleaved_medians
from benchmarks.harness.synthesis import blueprint_seconds, write_generated

_ROUNDS = 3
_GOAL_RATIO = 1.3
_SIZES = ((5, 4), (25, 20), (50, 40))


def measure() -> list[Figure]:
    """Take the measurement."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [write_generated(Path(directory), pools, models) for pools, models in _SIZES]
        seconds = interleaved_medians([partial(blueprint_seconds, path) for path in paths], _ROUNDS)
    (small, middle, large), (pools_small, pools_middle, pools_large) = seconds, (size[0] for size in _SIZES)
    lower = (middle - small) / (pools_middle - pools_small)
    upper = (large - middle) / (pools_large - pools_middle)
    return [
        Figure("synth_growth", upper, "s", baseline=lower, goal=_GOAL_RATIO),
        Figure("synth_growth_total", large, "s"),
    ]
