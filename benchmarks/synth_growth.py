"""How synthesis time grows from 5 pools and 4 models to 50 pools and 40 models.

Three generated blueprints with 5, 25 and 50 pools, and four models per five pools, give two slopes: the
processor seconds per additional pool in the lower half and in the upper half, in one warm process. The value
is the upper slope, and the baseline is the lower one. Linear growth has a ratio of 1; the goal is at most
1.3. `synth_growth_total` is the processor time of the largest blueprint.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.figure import Figure, run
from benchmarks.harness.generated import write_generated

_ROUNDS = 3
_GOAL_RATIO = 1.3
_SIZES = ((5, 4), (25, 20), (50, 40))


def measure() -> list[Figure]:
    """Take the measurement."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [write_generated(Path(directory), pools, models) for pools, models in _SIZES]
        program = [sys.executable, "-m", "benchmarks.harness.warm_synthesis", str(_ROUNDS)]
        small, middle, large = json.loads(run([*program, *paths]))
    few, more, maximum = (pools for pools, _ in _SIZES)
    lower = (middle - small) / (more - few)
    upper = (large - middle) / (maximum - more)
    return [
        Figure("synth_growth", upper, "s", baseline=lower, goal=_GOAL_RATIO),
        Figure("synth_growth_total", large, "s"),
    ]
