"""How much memory `blueprints validate quickstart-g6e` uses at its peak.

The baseline is a process that only imports the required libraries (pydantic, PyYAML, typer).
`validate_memory_libraries` has another one: all modules of other projects and of Python that the command
imports. pydantic loads its parts when they are first used, so this is the least that a program with a model
and a command takes; it is 85 % of what the goal allows.
"""

from __future__ import annotations

import sys

from benchmarks.harness.figure import BLUEPRINTS, Figure, cost, interleaved_medians
from benchmarks.validate_time import library_imports

#: What its processes run.
PROGRAMS = ("inference_blueprints/cli/main.py", "inference_blueprints/loading.py")
_ROUNDS = 5
_GOAL_RATIO = 1.5
_LIBRARIES = "import pydantic, typer, yaml"


def measure() -> list[Figure]:
    """Take the measurement."""
    imports = library_imports()
    validate, libraries, imported = interleaved_medians(
        [
            lambda: cost([BLUEPRINTS, "validate", "quickstart-g6e"]).memory_mib,
            lambda: cost([sys.executable, "-c", _LIBRARIES]).memory_mib,
            lambda: cost(imports).memory_mib,
        ],
        _ROUNDS,
    )
    return [
        Figure("validate_memory", validate, "MiB", baseline=libraries, goal=_GOAL_RATIO),
        Figure("validate_memory_libraries", validate, "MiB", baseline=imported),
    ]
